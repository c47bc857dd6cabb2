import { readFile } from 'node:fs/promises';
import {
  asyncApiDocument,
  type AsyncApiDocument,
  type ExampleMessage,
} from '#events/asyncapi/document.ts';
import { aggregates } from '#events/events.ts';
import { dataVersion } from '#events/upcast.ts';
import packageJson from '../../../../package.json' with { type: 'json' };

const GOLDEN = new URL('../../../../events/golden/', import.meta.url);

/**
 * The document of all events, made from their schemas, with the recorded message of each type as
 * its example.
 * @throws Error if the recorded message of a type is missing
 */
export async function readAsyncApi(): Promise<AsyncApiDocument> {
  const types = Object.values(aggregates).flatMap(({ events }) => Object.keys(events));
  const examples = types.map(async (type): Promise<[string, ExampleMessage]> => {
    const file = new URL(`${type}.v${dataVersion(type)}.json`, GOLDEN);
    return [type, JSON.parse(await readFile(file, 'utf8')) as ExampleMessage];
  });
  return asyncApiDocument(packageJson.version, new Map(await Promise.all(examples)));
}

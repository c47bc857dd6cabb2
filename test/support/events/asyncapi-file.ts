import { readFileSync, writeFileSync } from 'node:fs';
import { asyncApiDocument, type AsyncApiDocument } from '#events/asyncapi/document.ts';
import { dataVersion } from '#events/upcast.ts';
import packageJson from '../../../package.json' with { type: 'json' };
import { readMessage, todaysSchemas } from './golden-files.ts';

const FILE = new URL('../../../events/asyncapi.json', import.meta.url);

/** The document as it has to be, with the golden messages as its examples. */
export function todaysAsyncApi(): AsyncApiDocument {
  const types = [...todaysSchemas.keys()];
  const examples = types.map((type) => [type, readMessage(type, dataVersion(type))] as const);
  return asyncApiDocument(packageJson.version, new Map(examples));
}

export function recordAsyncApi(): void {
  writeFileSync(FILE, asText(todaysAsyncApi()));
}

export function recordedAsyncApi(): string {
  return readFileSync(FILE, 'utf8');
}

export function asText(document: AsyncApiDocument): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}

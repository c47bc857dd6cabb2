import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { encode } from '#events/codec.ts';
import { aggregates } from '#events/events.ts';
import type { AggregateKind } from '#events/subjects.ts';
import { dataVersion } from '#events/upcast.ts';
import { exampleEvents } from './example-lives.ts';
import { incompatibilities, loosenings, type Schema } from './schema-compatibility.ts';

/** A whole message of the EVENTS stream; the body as JSON, not as its bytes. */
export type GoldenMessage = {
  subject: string;
  headers: Record<string, string>;
  body: { data: unknown; state: unknown; stateVersion: number };
};

const folder = new URL('../../../events/golden/', import.meta.url);

/** Every type of event with the current schema of its data, as JSON. */
export const todaysSchemas: ReadonlyMap<string, Schema> = new Map(
  Object.values(aggregates)
    .flatMap(({ events }) => Object.entries(events))
    .map(([type, schema]) => [type, JSON.parse(JSON.stringify(schema)) as Schema]),
);

/** Every kind of aggregate with the current schema of the state in its events. */
export const todaysStates: ReadonlyMap<string, Schema> = new Map(
  Object.entries(aggregates).map(([kind, { state }]) => [
    kind,
    JSON.parse(JSON.stringify(state)) as Schema,
  ]),
);

/** The current version of the state of a kind of aggregate. */
export function stateVersion(kind: string): number {
  return aggregates[kind as AggregateKind].stateVersion;
}

/** Names of the required files: two for each version of each type, one for the current state. */
export function expectedFiles(): string[] {
  const names = [...todaysSchemas.keys()].flatMap((type) =>
    Array.from({ length: dataVersion(type) }, (_, index) => [
      messageFile(type, index + 1),
      schemaFile(type, index + 1),
    ]),
  );
  const states = [...todaysStates.keys()].map((kind) => stateFile(kind, stateVersion(kind)));
  return [...names.flat(), ...states];
}

export function goldenFiles(): string[] {
  return readdirSync(folder);
}

export function readMessage(type: string, version: number): GoldenMessage {
  return read(messageFile(type, version)) as GoldenMessage;
}

export function readSchema(type: string, version: number): Schema {
  return read(schemaFile(type, version)) as Schema;
}

export function readState(kind: string, version: number): Schema {
  return read(stateFile(kind, version)) as Schema;
}

/**
 * Writes the missing files of the current versions, and the current schemas if they only add
 * optional fields to the recorded ones. An existing golden message is never written again.
 * @throws Error if a schema changed otherwise: it needs a new version and an upcaster
 */
export function recordGolden(): void {
  for (const [type, schema] of todaysSchemas) {
    const version = dataVersion(type);
    if (existsSync(new URL(schemaFile(type, version), folder)))
      refuseMoreThanFields(type, readSchema(type, version), schema);
    write(schemaFile(type, version), schema);
    if (!existsSync(new URL(messageFile(type, version), folder)))
      write(messageFile(type, version), messageOf(type));
  }
  for (const [kind, schema] of todaysStates) {
    // States of other versions are never read.
    for (let version = 1; version < stateVersion(kind); version += 1)
      rmSync(new URL(stateFile(kind, version), folder), { force: true });
    const file = stateFile(kind, stateVersion(kind));
    if (existsSync(new URL(file, folder)))
      refuseMoreThanFields(`the state of a ${kind}`, read(file) as Schema, schema);
    write(file, schema);
  }
}

/** Recording a looser schema would hide that older builds refuse what it allows. */
function refuseMoreThanFields(type: string, before: Schema, after: Schema): void {
  const reasons = [...incompatibilities(before, after), ...loosenings(before, after)];
  if (reasons.length > 0) throw new Error(`${type} needs a new version: ${reasons.join('; ')}`);
}

function messageOf(type: string): GoldenMessage {
  const example = exampleEvents.get(type);
  if (example === undefined) throw new Error(`${type} has no example in example-lives.ts`);
  const { subject, headers, body } = encode(example);
  const parsed = JSON.parse(new TextDecoder().decode(body)) as GoldenMessage['body'];
  return { subject, headers, body: parsed };
}

function messageFile(type: string, version: number): string {
  return `${type}.v${version}.json`;
}

function schemaFile(type: string, version: number): string {
  return `${type}.v${version}.schema.json`;
}

function stateFile(kind: string, version: number): string {
  return `${kind}.state.v${version}.schema.json`;
}

function read(name: string): unknown {
  return JSON.parse(readFileSync(new URL(name, folder), 'utf8'));
}

function write(name: string, value: unknown): void {
  writeFileSync(new URL(name, folder), `${JSON.stringify(value, null, 2)}\n`);
}

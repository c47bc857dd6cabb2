import { Compile } from 'typebox/compile';
import type { TSchema } from 'typebox';
import { describe, expect, it, test } from 'vitest';
import { decode, encode } from '#events/codec.ts';
import { aggregates, type RecordedEvent } from '#events/events.ts';
import { dataVersion } from '#events/upcast.ts';
import {
  expectedFiles,
  goldenFiles,
  readMessage,
  readSchema,
  readState,
  recordGolden,
  stateVersion,
  todaysSchemas,
  todaysStates,
  type GoldenMessage,
} from '#test/support/events/golden-files.ts';
import { incompatibilities, loosenings } from '#test/support/events/schema-compatibility.ts';

const COMMAND = 'UPDATE_GOLDEN=1 npm test -- test/unit/events';
if (process.env['UPDATE_GOLDEN'] === '1') recordGolden();

const types = [...todaysSchemas.keys()];
const versions = types.flatMap((type) =>
  Array.from({ length: dataVersion(type) }, (_, index) => [type, index + 1] as const),
);

it('every version of every event has its golden files, and there are no others', () => {
  const hint = `write the missing ones with ${COMMAND}`;
  expect(goldenFiles().toSorted(), hint).toEqual(expectedFiles().toSorted());
});

describe('the golden message of', () => {
  test.each(versions)('%s, version %i, can still be decoded', (type, version) => {
    const golden = readMessage(type, version);
    const event = decodeGolden(golden);
    expect(event.type).toBe(type);
    expect(event.id).toBe(golden.headers['ce-id']);
    const { stateVersion } = aggregates[event.aggregate.kind];
    const isKnown = golden.body.stateVersion === stateVersion;
    expect(event.state).toEqual(isKnown ? golden.body.state : null);
    if (version === dataVersion(type)) expect(event.data).toEqual(golden.body.data);
  });

  test.each(versions)('%s, version %i, fits the schema recorded with it', (type, version) => {
    const schema = Compile(readSchema(type, version) as TSchema);
    expect(schema.Check(readMessage(type, version).body.data)).toBe(true);
  });

  test.each(types)('%s is what is encoded today', (type) => {
    const golden = readMessage(type, dataVersion(type));
    const event = decodeGolden(golden);
    if (golden.body.stateVersion !== aggregates[event.aggregate.kind].stateVersion) return;
    const { subject, headers, body } = encode(event);
    expect({ subject, headers, body: JSON.parse(new TextDecoder().decode(body)) }).toEqual(golden);
  });
});

describe('the schema of', () => {
  test.each(types)('%s has only additions', (type) => {
    const today = todaysSchemas.get(type) ?? {};
    const reasons = incompatibilities(readSchema(type, dataVersion(type)), today);
    const advice = 'keep what was there, or add an upcaster in events/upcast.ts (events/README.md)';
    expect(reasons, `${type} changed incompatibly: ${reasons.join('; ')}; ${advice}`).toEqual([]);
  });

  test.each(types)('%s has nothing that older builds refuse', (type) => {
    const reasons = loosenings(readSchema(type, dataVersion(type)), todaysSchemas.get(type) ?? {});
    const advice = 'add a step that returns the data unchanged to events/upcast.ts';
    expect(reasons, `${reasons.join('; ')}: ${advice}`).toEqual([]);
  });

  test.each(types)('%s is recorded in its current form', (type) => {
    const hint = `where the change only adds, record it with ${COMMAND}`;
    expect(todaysSchemas.get(type), hint).toEqual(readSchema(type, dataVersion(type)));
  });
});

describe('the state of a', () => {
  test.each([...todaysStates.keys()])('%s has nothing that older builds refuse', (kind) => {
    const before = readState(kind, stateVersion(kind));
    const reasons = loosenings(before, todaysStates.get(kind) ?? {});
    expect(reasons, `${reasons.join('; ')}: raise its stateVersion`).toEqual([]);
  });

  test.each([...todaysStates.keys()])('%s has only additions', (kind) => {
    const reasons = incompatibilities(
      readState(kind, stateVersion(kind)),
      todaysStates.get(kind) ?? {},
    );
    const advice = 'states in the log would be refused; raise its stateVersion in events/events.ts';
    expect(reasons, `${reasons.join('; ')}: ${advice}`).toEqual([]);
  });

  test.each([...todaysStates.keys()])('%s is recorded in its current form', (kind) => {
    const hint = `where the change only adds, record it with ${COMMAND}`;
    expect(todaysStates.get(kind), hint).toEqual(readState(kind, stateVersion(kind)));
  });
});

function decodeGolden({ subject, headers, body }: GoldenMessage): RecordedEvent {
  return decode(subject, (name) => headers[name] ?? '', JSON.stringify(body), 1);
}

import { readFileSync } from 'node:fs';
import { headers as newHeaders } from '@nats-io/transport-node';
import { describe, expect, it, test, vi } from 'vitest';
import { decode, encode, MalformedEvent } from '#events/codec.ts';
import type { RefOf } from '#events/events.ts';
import { dataVersion } from '#events/upcast.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { createJetStreamRawRecords } from '#src/kernel/event-store/jetstream/jetstream-raw-records.ts';
import { appendEach, followed, historyOf, openRealLog } from '#test/support/stores/event-stores.ts';
import {
  expectedFiles,
  readMessage,
  type GoldenMessage,
} from '#test/support/events/golden-files.ts';

/**
 * `session.extended` as if it had been retired twice: first it counted minutes, then its credits
 * had another name. Only the table of steps is replaced; all other code is the service's.
 */
vi.mock('#events/upcast.ts', async (importOriginal) => {
  const { createUpcasts } = await importOriginal<typeof import('#events/upcast.ts')>();
  return {
    createUpcasts,
    ...createUpcasts({
      'session.extended': [
        (data) => {
          const { minutes, ...rest } = data as { minutes: number };
          if (typeof minutes !== 'number') throw new TypeError('no minutes');
          return { byMs: minutes * 60_000, ...rest };
        },
        (data) => {
          const { credits, ...rest } = data as { credits: number };
          return { creditsReserved: credits, ...rest };
        },
      ],
    }),
  };
});

const TYPE = 'session.extended';
/**
 * The same event in the current shape, except for its version number, which is that of its golden
 * file.
 */
const golden = readMessage(TYPE, 1);
const { data: today, state } = golden.body;

function retired(version: number): GoldenMessage {
  const file = new URL(`retired/${TYPE}.v${version}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as GoldenMessage;
}

function read({ subject, headers, body }: GoldenMessage) {
  return decode(subject, (name) => headers[name] ?? '', JSON.stringify(body), 7);
}

describe('an event in a retired shape', () => {
  test.each([1, 2])('of version %i is decoded in the current shape', (version) => {
    const event = read(retired(version));
    expect(event.data).toEqual(today);
    expect(event.state).toEqual(state);
    expect([event.id, event.type]).toEqual([golden.headers['ce-id'], TYPE]);
  });

  it('is not encoded any more: new events have the newest version', () => {
    expect(dataVersion(TYPE)).toBe(3);
    const { headers, body } = encode(read(retired(1)));
    expect(headers['ce-dataschema']).toBe(`urn:bss:event:${TYPE}:3`);
    expect(JSON.parse(new TextDecoder().decode(body)).data).toEqual(today);
  });

  it('that does not fit its own version is malformed, like any other', () => {
    const first = retired(1);
    const broken = { ...first, body: { ...first.body, data: { hours: 1 } } };
    expect(() => read(broken)).toThrow(MalformedEvent);
    const late = { ...first.headers, 'ce-dataschema': `urn:bss:event:${TYPE}:4` };
    expect(() => read({ ...first, headers: late })).toThrow(MalformedEvent);
  });

  it('keeps its golden files forever', () => {
    const files = expectedFiles().filter((name) => name.startsWith(`${TYPE}.`));
    expect(files).toEqual(
      [1, 2, 3].flatMap((version) => [
        `${TYPE}.v${version}.json`,
        `${TYPE}.v${version}.schema.json`,
      ]),
    );
  });

  it('is stored unchanged, and every reader gets it in the current shape', async () => {
    await using opened = await openRealLog();
    const { eventStore, connection } = opened;
    const { aggregate } = read(retired(1));
    const session = aggregate as RefOf<'session'>;
    await appendEach(eventStore, session, 1);
    await publish(connection, retired(1));
    await publish(connection, retired(2));

    const history = await historyOf(eventStore, session);
    expect(history.map(({ type }) => type)).toEqual(['session.requested', TYPE, TYPE]);
    for (const { data } of history.slice(1)) expect(data).toEqual(today);
    const batches = await followed(eventStore, { subjects: ['evt.>'], after: 0 }, 3);
    expect(batches.flat().slice(1)).toEqual(history.slice(1));
    expect((await loadState<'session'>(eventStore, session)).state).toEqual(state);
    expect((await eventStore.readLastUpTo(session, 2))?.data).toEqual(today);

    const records = createJetStreamRawRecords(connection);
    for await (const batch of records.read({ after: 1, upTo: 3, organizationId: null }))
      expect(batch.map(({ body }) => JSON.parse(body))).toEqual([retired(1).body, retired(2).body]);
  });
});

async function publish(
  { js }: JetStreamConnection,
  { subject, headers, body }: GoldenMessage,
): Promise<void> {
  const named = newHeaders();
  for (const [name, value] of Object.entries(headers)) named.set(name, value);
  await js.publish(subject, JSON.stringify(body), { headers: named });
}

import { expect, test } from 'vitest';
import type { ProfileEvent } from '#events/profile.ts';
import { extensionRetention } from '#src/features/extensions/retention.ts';
import { profileRetention } from '#src/features/profiles/retention.ts';
import { sweepObjects } from '#src/kernel/objects/sweep/sweep-objects.ts';
import { createCommandContext, handleTransaction } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';

const HOUR = 3_600_000;
const AT = '2026-11-20T09:30:00.000Z';

function saved(version: number, sha256: string): ProfileEvent {
  const contents = { origins: [], cookies: [] };
  const data = { version, sessionId: 'ses_1', savedAt: AT, sha256, bytes: 1, browser: '1' };
  return { type: 'profile.version-saved', data: { ...data, contents, kept: 1 } };
}

test('an archive goes some time after it was replaced, and with its profile', async () => {
  let now = 0;
  const context = createCommandContext(createMemoryEventStore(), () => now);
  const objects = createMemoryObjectStore({ now: () => now });
  const aggregate = { kind: 'profile', organizationId: 'acme', id: 'prf_1' } as const;
  const append = (...events: ProfileEvent[]) =>
    handleTransaction<'profile'>(context, aggregate, newMetadata('test'), async (reads) => {
      await reads.readCurrent<'profile'>(aggregate);
      return [{ aggregate, events }];
    });
  const put = (sha256: string) =>
    objects.put(
      `profiles/acme/prf_1/${sha256}`,
      (async function* () {
        yield Buffer.from('a');
      })(),
    );
  async function sweep(): Promise<string[]> {
    const rules = [
      profileRetention(context.eventStore, { replacedKeptMs: 10 * HOUR, now: context.now }),
    ];
    const failures: unknown[] = [];
    await sweepObjects({ objects, rules }, new AbortController().signal, (error) =>
      failures.push(error),
    );
    expect(failures).toEqual([]);
    const left = await Array.fromAsync(objects.list('profiles/'));
    return left.map(({ key }) => key.split('/')[3] ?? '');
  }

  const [first, second, unrecorded] = ['a', 'b', 'c'].map((digit) => digit.repeat(64));
  await append({ type: 'profile.created', data: { name: 'shop', by: 'ada', at: AT } });
  for (const name of [first, second, unrecorded]) await put(name ?? '');
  // A save may be about to record it.
  expect(await sweep()).toEqual([first, second, unrecorded]);
  await append(saved(1, first ?? ''));
  now = 2 * HOUR;
  // Nothing says that the others were removed: the event store may be an older one.
  expect(await sweep()).toEqual([first, second, unrecorded]);
  await append(saved(2, second ?? ''));
  now = 11 * HOUR;
  expect(await sweep()).toEqual([first, second, unrecorded]);
  now = 12 * HOUR;
  expect(await sweep()).toEqual([second, unrecorded]);
  const at = new Date(now).toISOString();
  await append({ type: 'profile.removed', data: { by: 'ada', at } });
  // A session that reads it may wait for its browser.
  now += HOUR - 1;
  expect(await sweep()).toEqual([second, unrecorded]);
  now += 1;
  expect(await sweep()).toEqual([]);
});

test('an event store of before the saves removes nothing that they have stored', async () => {
  const objects = createMemoryObjectStore({ now: () => 0 });
  async function* body() {
    yield Buffer.from('a');
  }
  for (const key of ['profiles/acme/prf_1/aa', 'profiles/acme/prf_2/bb', 'extensions/acme/ext_1'])
    await objects.put(key, body());
  const eventStore = createMemoryEventStore();
  const now = () => 100 * HOUR;
  const rules = [
    profileRetention(eventStore, { replacedKeptMs: 0, now }),
    extensionRetention(eventStore, now),
  ];
  const swept = await sweepObjects({ objects, rules }, new AbortController().signal, () => {});
  expect(swept).toMatchObject({ removed: 0, unknown: 3 });
});

test('versions that were replaced go however many they are, by one read of the history', async () => {
  const REPLACED = 300;
  let now = 0;
  const stored = createMemoryEventStore();
  const context = createCommandContext(stored, () => now);
  const objects = createMemoryObjectStore({ now: () => now });
  const aggregate = { kind: 'profile', organizationId: 'acme', id: 'prf_1' } as const;
  async function* body() {
    yield Buffer.from('a');
  }
  const names = Array.from({ length: REPLACED + 1 }, (_, n) => `${n}`.padStart(64, '0'));
  for (const name of names) await objects.put(`profiles/acme/prf_1/${name}`, body());
  const events: ProfileEvent[] = [
    { type: 'profile.created', data: { name: 'shop', by: 'ada', at: AT } },
    ...names.map((name, at) => saved(at + 1, name)),
  ];
  for (let from = 0; from < events.length; from += 50)
    await handleTransaction<'profile'>(context, aggregate, newMetadata('test'), async (reads) => {
      await reads.readCurrent<'profile'>(aggregate);
      return [{ aggregate, events: events.slice(from, from + 50) }];
    });
  let reads = 0;
  const eventStore: typeof stored = {
    ...stored,
    history(...asked) {
      reads += 1;
      return stored.history(...asked);
    },
  };
  const rules = [profileRetention(eventStore, { replacedKeptMs: 0, now: () => now })];
  const sweep = () => sweepObjects({ objects, rules }, new AbortController().signal, () => {});
  now = 2 * HOUR;
  expect(await sweep()).toMatchObject({ removed: REPLACED, heldBack: 0, unknown: 0 });
  expect(reads).toBe(1);
  expect(await Array.fromAsync(objects.list('profiles/'))).toHaveLength(1);
});

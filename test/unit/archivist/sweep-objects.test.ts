import { describe, expect, test, vi } from 'vitest';
import {
  adoptObjects,
  AnotherEventStore,
  requireOwnObjects,
} from '#src/kernel/objects/sweep/bucket-owner.ts';
import {
  startObjectSweep,
  sweepObjects,
  sweepWithLease,
  type ObjectGroup,
  type RetentionRule,
  type Verdict,
} from '#src/kernel/objects/sweep/sweep-objects.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { createMemoryLeases } from '#src/kernel/messaging/leases.memory.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import { ObjectStoreUnavailable } from '#src/kernel/objects/object-store.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { eventually } from '#test/support/projector.ts';

const never = new AbortController().signal;
const NOTHING = { over: 0, removed: 0, unknown: 0, heldBack: 0, leftovers: 0, failed: 0 };

/** A store with an object of one byte at each key, stored one millisecond after the other. */
async function storeWith(...keys: string[]) {
  let ms = 0;
  const objects = createMemoryObjectStore({ now: () => (ms += 1) });
  async function* body() {
    yield Buffer.from('a');
  }
  const put = (key: string) => objects.put(key, body());
  for (const key of keys) await put(key);
  const left = async () => {
    const kinds = ['files/', 'extensions/'].map((kind) => Array.fromAsync(objects.list(kind)));
    return (await Promise.all(kinds)).flat().map(({ key }) => key);
  };
  return { objects, left, put };
}

/** A rule by which the groups with one of these ids are over. */
function over(kind: string, ...ids: string[]): { rule: RetentionRule; asked: ObjectGroup[] } {
  const asked: ObjectGroup[] = [];
  const rule: RetentionRule = {
    kind,
    async judge(group) {
      asked.push(group);
      return ids.includes(group.id) ? 'expired' : 'keep';
    },
  };
  return { rule, asked };
}

test('removes the groups whose time is over by the rule of their kind, and no others', async () => {
  const { objects, left } = await storeWith(
    ...['files/acme/ses_1/a', 'files/acme/ses_2/a', 'files/acme/ses_1/b', 'files/zeta/ses_1/a'],
    ...['files/zeta/ses_10/a', 'extensions/acme/e_1', 'extensions/acme/e_2'],
  );
  const [files, extensions] = [over('files', 'ses_1'), over('extensions', 'e_2')];
  const rules = [files.rule, extensions.rule];
  const swept = await sweepObjects({ objects, rules }, never, () => undefined);
  expect(swept).toEqual({ ...NOTHING, groups: 6, over: 3, removed: 4 });
  expect(await left()).toEqual([
    'files/acme/ses_2/a',
    'files/zeta/ses_10/a',
    'extensions/acme/e_1',
  ]);
  const group = { kind: 'files', organizationId: 'acme', id: 'ses_1' };
  expect(files.asked[0]).toEqual({ ...group, objects: 2, bytes: 2, newestAt: 3 });
  const again = await sweepObjects({ objects, rules }, never, () => undefined);
  expect(again).toMatchObject({ groups: 3, removed: 0 });
});

test('keeps objects of a kind without a rule, and those whose rule fails', async () => {
  const { objects, left } = await storeWith('files/acme/ses_1/a', 'extensions/acme/e_1');
  const rule = { kind: 'files', judge: () => Promise.reject(new Error('no answer')) };
  const failures: unknown[] = [];
  const swept = await sweepObjects({ objects, rules: [rule] }, never, (error) =>
    failures.push(error),
  );
  expect(swept).toMatchObject({ groups: 1, removed: 0, failed: 1 });
  expect(failures).toHaveLength(1);
  expect(await left()).toHaveLength(2);
});

test('goes on after an outage, and leaves the lease to others', async () => {
  const { objects, left } = await storeWith('files/acme/ses_1/a');
  const leases = createMemoryLeases({ now: Date.now });
  const logged: string[] = [];
  const note = (...[, text]: [object, string]) => logged.push(text);
  const log = { info: note, error: note } as unknown as Logger;
  let outages = 2;
  const store = {
    ...objects,
    list: (prefix: string) => {
      if ((outages -= 1) >= 0) throw new ObjectStoreUnavailable();
      return objects.list(prefix);
    },
    recount: async () => 0,
  };
  await leases.acquire('object-sweep', 'another process');
  const { rule } = over('files', 'ses_1');
  await using _ = startObjectSweep(
    { objects: store, rules: [rule], leases, requireOwnObjects: async () => {} },
    { everyMs: 5, log },
  );
  await leases.release('object-sweep', 'another process');
  await vi.waitFor(async () => expect(await left()).toEqual([]), eventually);
  await vi.waitFor(
    () => expect(logged.at(-1)).toBe('removed objects whose time is over'),
    eventually,
  );
  expect(logged.filter((text) => text.includes('tried again'))).toHaveLength(2);
});

describe('what somebody has removed', () => {
  const ids = Array.from({ length: 400 }, (_, n) => `e_${n}`);
  const overBy = (verdict: Verdict, over: number): RetentionRule => ({
    kind: 'extensions',
    judge: async ({ id }) => (Number(id.slice(2)) < over ? verdict : 'keep'),
  });
  const sweep = async (over: number, permissions = {}, verdict: Verdict = 'removed') => {
    const { objects, left } = await storeWith(...ids.map((id) => `extensions/acme/${id}`));
    const rules = [overBy(verdict, over)];
    const swept = await sweepObjects({ objects, rules }, never, raise, permissions);
    return { swept, left: (await left()).length };
  };
  const raise = (error: unknown) => {
    throw error;
  };

  test('goes, if it is little at once', async () => {
    expect(await sweep(200)).toMatchObject({ swept: { removed: 200, heldBack: 0 }, left: 200 });
  });

  test('stays, if it is much at once, until an operator allows it', async () => {
    expect(await sweep(201)).toMatchObject({ swept: { removed: 0, heldBack: 201 }, left: 400 });
    const allowed = await sweep(201, { beyondLimit: true });
    expect(allowed).toMatchObject({ swept: { removed: 201, heldBack: 0 }, left: 199 });
  });

  /** So many groups of each organization have been removed. */
  async function sweepOf(counts: Record<string, number>) {
    const keys = Object.entries(counts).flatMap(([owner, count]) =>
      ids.slice(0, count).map((id) => `extensions/${owner}/${id}`),
    );
    const { objects, left } = await storeWith(...keys);
    const rules = [overBy('removed', 400)];
    const swept = await sweepObjects({ objects, rules }, never, raise);
    return { swept, owners: new Set((await left()).map((key) => key.split('/')[1])) };
  }

  test('by two organizations that remove much does not keep that of a third', async () => {
    const { swept, owners } = await sweepOf({ acme: 150, beta: 150, gamma: 9 });
    expect(swept).toMatchObject({ removed: 9, heldBack: 300 });
    expect(owners).toEqual(new Set(['acme', 'beta']));
  });

  test('stays, if it is much at once of many organizations', async () => {
    const each = Object.fromEntries(Array.from({ length: 5 }, (_, at) => [`org_${at}`, 50]));
    expect((await sweepOf(each)).swept).toMatchObject({ removed: 0, heldBack: 250 });
  });

  test.each<Verdict>(['removed', 'expired'])(
    'stays, if it is stored anew (%s)',
    async (verdict) => {
      const { objects, left, put } = await storeWith('extensions/acme/e_1', 'extensions/acme/e_2');
      const rule: RetentionRule = {
        kind: 'extensions',
        async judge({ id }) {
          if (id === 'e_1') await put('extensions/acme/e_1');
          return verdict;
        },
      };
      const swept = await sweepObjects({ objects, rules: [rule] }, never, raise);
      expect(swept).toMatchObject({ over: 2, removed: 1, failed: 0 });
      expect(await left()).toEqual(['extensions/acme/e_1']);
    },
  );

  test('is another thing than what has expired, of which all may go at once', async () => {
    expect(await sweep(400, {}, 'expired')).toMatchObject({ swept: { removed: 400 }, left: 0 });
  });

  test('a dry run removes nothing', async () => {
    expect(await sweep(5, { isDryRun: true })).toMatchObject({
      swept: { over: 5, removed: 0 },
      left: 400,
    });
  });
});

test('what the event store does not know stays, until an operator removes it', async () => {
  const { objects, left } = await storeWith('files/acme/ses_1/a');
  const rule: RetentionRule = { kind: 'files', judge: async () => 'unknown' };
  const sweep = (permissions = {}) =>
    sweepObjects({ objects, rules: [rule] }, never, () => undefined, permissions);
  expect(await sweep()).toMatchObject({ removed: 0, unknown: 1 });
  expect(await left()).toHaveLength(1);
  expect(await sweep({ unknown: true })).toMatchObject({ removed: 1, unknown: 0 });
  expect(await left()).toEqual([]);
});

test('the objects of another event store are not swept, until this one adopts them', async () => {
  const { objects, left } = await storeWith('files/acme/ses_1/a');
  const { rule } = over('files', 'ses_1');
  const leases = createMemoryLeases({ now: Date.now });
  const sweepBy = (eventStore: EventStore) => {
    const requireOwn = () => requireOwnObjects({ objects, eventStore });
    const parts = { objects, rules: [rule], leases, requireOwnObjects: requireOwn };
    return sweepWithLease(parts, never, () => undefined);
  };
  const [ours, another] = [createMemoryEventStore(), createMemoryEventStore()];
  await requireOwnObjects({ objects, eventStore: ours });
  await expect(sweepBy(another)).rejects.toThrow(AnotherEventStore);
  expect(await left()).toHaveLength(1);
  await adoptObjects({ objects, eventStore: another });
  await expect(sweepBy(ours)).rejects.toThrow(AnotherEventStore);
  expect(await sweepBy(another)).toMatchObject({ removed: 1 });
});

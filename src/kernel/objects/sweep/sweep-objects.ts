import { thirdOf } from '#src/kernel/async/places.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { Leases } from '#src/kernel/messaging/leases.ts';
import {
  PUT_LEASE_MS,
  type ObjectStore,
  type StoredObject,
} from '#src/kernel/objects/object-store.ts';
import type { OwnedObjects } from '#src/kernel/objects/owned-objects.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { withLease } from '../../messaging/with-lease.ts';

/** The objects of one session, profile or the like: those under `kind/organization/id`. */
export type ObjectGroup = {
  kind: string;
  organizationId: string;
  id: string;
  objects: number;
  bytes: number;
  /** When its newest object was stored, in milliseconds since 1970. */
  newestAt: number;
  /** Where each object is judged alone: what its key has behind the id. */
  name?: string;
};

/**
 * What is to become of a group. `expired`: its time is over, as that of any number of others may be
 * at once. `removed`: somebody has removed what it is of, which cannot be made again: see `LIMIT`.
 * `unknown`: no event says that it was removed, and none that it is kept: it stays
 * until an operator decides. An event store that was restored from an older backup, or that is
 * another one, knows nothing of what is in use.
 */
export type Verdict = 'keep' | 'expired' | 'removed' | 'unknown';

/** How long objects of a kind are kept. Objects of a kind without a rule are kept for ever. */
export type RetentionRule = {
  kind: string;
  /** True: each object is a group. */
  judgesEach?: true;
  /** An error keeps the group until the next sweep. */
  judge(group: ObjectGroup): Promise<Verdict>;
};

export type SweepDependencies = {
  objects: OwnedObjects;
  rules: readonly RetentionRule[];
  leases: Leases;
  /** Whether the objects belong to this event store. @throws AnotherEventStore */
  requireOwnObjects(): Promise<void>;
};

/** What an operator may allow in one sweep. */
export type SweepPermissions = {
  /** Remove groups that the event store does not know, too. */
  unknown?: boolean;
  /** Remove more than a sweep removes by itself of what somebody has removed. */
  beyondLimit?: boolean;
  /** Count, and remove nothing. */
  isDryRun?: boolean;
};

/**
 * `unknown`: groups that the event store does not know, and that were kept. `heldBack`: groups that
 * are over, of which there were too many: they stay until an operator decides. `leftovers`: of puts
 * that never ended. `failed`: groups whose rule or removal failed.
 */
export type Sweep = {
  groups: number;
  over: number;
  removed: number;
  unknown: number;
  heldBack: number;
  leftovers: number;
  failed: number;
};

/**
 * The part of a kind's groups that one sweep removes by itself of those that somebody has removed,
 * and a number that is always allowed: twenty profiles of ten versions. In regular use a sweep
 * finds what was removed since the one before. Where it finds more, something may be wrong, and
 * none goes. But an organization that has removed more than a third of the limit is held back alone
 * where the others together keep to it: none stops the sweep for the others.
 */
const LIMIT = { part: 0.05, always: 200 };
/** Groups that are remembered until all of their kind are counted; the others are next. */
const REMEMBERED_MAX = 10_000;
const OWN_REMEMBERED_MAX = thirdOf(REMEMBERED_MAX);

/** The name of the lease: one sweep at a time. */
const LEASE = 'object-sweep';

/**
 * Sweeps at regular times until it is disposed, first after one interval. A sweep that is repeated,
 * or that is broken off, does no harm.
 */
export function startObjectSweep(
  dependencies: SweepDependencies,
  { everyMs, log }: { everyMs: number; log: Logger },
): AsyncDisposable {
  const stop = new AbortController();
  const { signal } = stop;
  const { objects, leases } = dependencies;
  const tell = (error: unknown, what: string) => log.error({ err: error }, what);

  async function sweep(): Promise<void> {
    const swept = await sweepWithLease(dependencies, signal, tell);
    if (swept === null) return;
    report(swept, log);
    const accounts = await objects.recount(signal);
    if (accounts > 0) log.warn({ accounts }, 'accounts of stored bytes were wrong');
  }
  /** Between two sweeps: they may fill the store, as where a process is killed again and again. */
  async function sweepLeftovers(): Promise<void> {
    const leftovers = await withLease(leases, LEASE, signal, async () => {
      await dependencies.requireOwnObjects();
      return objects.removeLeftovers();
    });
    if (leftovers !== null && leftovers > 0)
      log.info({ leftovers }, 'removed what killed puts have left');
  }
  async function work(): Promise<void> {
    let untilSweepMs = everyMs;
    for (;;) {
      const pauseMs = Math.min(untilSweepMs, PUT_LEASE_MS);
      await sleep(pauseMs, signal);
      if (signal.aborted) return;
      untilSweepMs = untilSweepMs > pauseMs ? untilSweepMs - pauseMs : everyMs;
      const isDue = untilSweepMs === everyMs;
      try {
        await (isDue ? sweep() : sweepLeftovers());
      } catch (error) {
        if (!signal.aborted) tell(error, 'the sweep of objects failed; it is tried again');
      }
    }
  }
  const working = work();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await working;
    },
  };
}

function report(swept: Sweep, log: Logger): void {
  if (swept.removed + swept.leftovers > 0) log.info(swept, 'removed objects whose time is over');
  if (swept.heldBack > 0)
    log.error(swept, 'too many objects were removed at once, and stay: see `bss objects sweep`');
  if (swept.unknown > 0)
    log.warn(swept, 'objects that the event store does not know stay: see `bss objects sweep`');
}

/** One sweep; null: another process sweeps. @throws as `sweepObjects`; AnotherEventStore */
export function sweepWithLease(
  dependencies: Omit<SweepDependencies, 'objects'> & { objects: ObjectStore },
  signal: AbortSignal,
  onFailure: (error: unknown, what: string) => void,
  permissions: SweepPermissions = {},
): Promise<Sweep | null> {
  return withLease(dependencies.leases, LEASE, signal, async ({ signal: held }) => {
    await dependencies.requireOwnObjects();
    return sweepObjects(dependencies, held, onFailure, permissions);
  });
}

/**
 * Removes the groups of objects whose rule says that their time is over, and what killed puts left.
 * @throws ObjectStoreUnavailable; the signal's reason
 */
export async function sweepObjects(
  { objects, rules }: Pick<SweepDependencies, 'rules'> & { objects: ObjectStore },
  signal: AbortSignal,
  onFailure: (error: unknown, what: string) => void,
  permissions: SweepPermissions = {},
): Promise<Sweep> {
  const { isDryRun = false } = permissions;
  const nothing = { groups: 0, over: 0, removed: 0, unknown: 0, heldBack: 0 };
  const sweep: Sweep = { ...nothing, leftovers: 0, failed: 0 };
  for (const rule of rules) await sweepKind(rule);
  signal.throwIfAborted();
  if (!isDryRun) sweep.leftovers = await objects.removeLeftovers();
  return sweep;

  async function sweepKind(rule: RetentionRule): Promise<void> {
    const removed = new Map<string, Removed>();
    let [groups, remembered] = [0, 0];
    for await (const group of groupsOf(objects.list(`${rule.kind}/`), rule)) {
      signal.throwIfAborted();
      groups += 1;
      const verdict = await judged(rule, group);
      if (verdict === 'unknown') sweep.unknown += 1;
      if (verdict !== 'expired' && verdict !== 'removed') continue;
      sweep.over += 1;
      if (verdict === 'expired' || permissions.beyondLimit === true) {
        await remove(group);
        continue;
      }
      const own = removed.get(group.organizationId) ?? { count: 0, groups: [] };
      removed.set(group.organizationId, own);
      own.count += 1;
      if (remembered === REMEMBERED_MAX || own.groups.length === OWN_REMEMBERED_MAX) continue;
      own.groups.push(group);
      remembered += 1;
    }
    sweep.groups += groups;
    const limit = Math.max(LIMIT.always, LIMIT.part * groups);
    const taken = withinLimit([...removed.values()], limit).flatMap((own) => own.groups);
    for (const group of taken) await remove(group);
    sweep.heldBack += countOf([...removed.values()]) - taken.length;
  }

  async function judged(rule: RetentionRule, group: ObjectGroup): Promise<Verdict> {
    try {
      const verdict = await rule.judge(group);
      return verdict === 'unknown' && permissions.unknown === true ? 'removed' : verdict;
    } catch (error) {
      failed(group, error);
      return 'keep';
    }
  }

  async function remove(group: ObjectGroup): Promise<void> {
    signal.throwIfAborted();
    if (isDryRun) return;
    try {
      sweep.removed += await removeGroup(objects, group);
    } catch (error) {
      failed(group, error);
    }
  }

  function failed({ kind }: ObjectGroup, error: unknown): void {
    sweep.failed += 1;
    onFailure(error, `objects of ${kind} are kept until the next sweep`);
  }
}

/** Keys come in order, so that a group is together. A key of two segments is in none. */
async function* groupsOf(
  listed: AsyncIterable<StoredObject>,
  { judgesEach }: Pick<RetentionRule, 'judgesEach'>,
): AsyncGenerator<ObjectGroup> {
  const open: ObjectGroup[] = [];
  for await (const { key, bytes, storedAt } of listed) {
    const [kind = '', organizationId = '', id, name] = key.split('/');
    if (id === undefined) continue;
    if (judgesEach === true && name !== undefined) {
      yield { kind, organizationId, id, name, objects: 1, bytes, newestAt: storedAt };
      continue;
    }
    let [group] = open;
    if (group === undefined || group.organizationId !== organizationId || group.id !== id) {
      if (group !== undefined) yield group;
      group = { kind, organizationId, id, objects: 0, bytes: 0, newestAt: 0 };
      open[0] = group;
    }
    group.objects += 1;
    group.bytes += bytes;
    group.newestAt = Math.max(group.newestAt, storedAt);
  }
  yield* open;
}

/** What an organization has removed of a kind: how many groups, and those that are remembered. */
type Removed = { count: number; groups: ObjectGroup[] };

/** Those whose groups a sweep removes by itself: see `LIMIT`. */
function withinLimit(all: readonly Removed[], limit: number): readonly Removed[] {
  if (countOf(all) <= limit) return all;
  const others = all.filter(({ count }) => count <= thirdOf(limit));
  return countOf(others) <= limit ? others : [];
}

function countOf(all: readonly Removed[]): number {
  return all.reduce((sum, { count }) => sum + count, 0);
}

/**
 * Removes a group; returns the number of objects. An object of its own key that was stored anew
 * since it was listed is another one, which was not judged: it stays.
 */
async function removeGroup(
  objects: ObjectStore,
  { kind, organizationId, id, name, newestAt }: ObjectGroup,
): Promise<number> {
  const key = [kind, organizationId, id, ...(name === undefined ? [] : [name])].join('/');
  const own = await objects.head(key);
  if (own !== null && own.storedAt > newestAt) return 0;
  const below = name === undefined ? await objects.removeAll(`${key}/`) : 0;
  if (own === null) return below;
  await objects.remove(key);
  return below + 1;
}

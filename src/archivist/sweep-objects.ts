import { sleep } from '#src/async/sleep.ts';
import type { Leases } from '#src/messaging/leases.ts';
import type { ObjectStore, StoredObject } from '#src/objects/object-store.ts';
import type { Logger } from '#src/telemetry/logger.ts';
import { withLease } from './with-lease.ts';

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

/** How long objects of a kind are kept. Objects of a kind without a rule are kept for ever. */
export type RetentionRule = {
  kind: string;
  /** True: each object is a group. */
  judgesEach?: true;
  /** Whether all of the group is to be removed now. An error keeps it until the next sweep. */
  isOver(group: ObjectGroup): Promise<boolean>;
};

export type SweepDependencies = {
  objects: ObjectStore;
  rules: readonly RetentionRule[];
  leases: Leases;
};

/** `leftovers`: of puts that never ended. `failed`: groups whose rule or removal failed. */
export type Sweep = { groups: number; removed: number; leftovers: number; failed: number };

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
  async function work(): Promise<void> {
    for (;;) {
      await sleep(everyMs, signal);
      if (signal.aborted) return;
      try {
        const swept = await withLease(dependencies.leases, LEASE, signal, (held) =>
          sweepObjects(dependencies, held, (error, what) => log.error({ err: error }, what)),
        );
        if (swept !== null && swept.removed + swept.leftovers > 0)
          log.info(swept, 'removed objects whose time is over');
      } catch (error) {
        if (!signal.aborted)
          log.error({ err: error }, 'the sweep of objects failed; it is tried again');
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

/**
 * Removes the groups of objects whose rule says that their time is over, and what killed puts left.
 * @throws ObjectStoreUnavailable; the signal's reason
 */
export async function sweepObjects(
  { objects, rules }: Pick<SweepDependencies, 'objects' | 'rules'>,
  signal: AbortSignal,
  onFailure: (error: unknown, what: string) => void,
): Promise<Sweep> {
  const sweep: Sweep = { groups: 0, removed: 0, leftovers: 0, failed: 0 };
  for (const rule of rules)
    for await (const group of groupsOf(objects.list(`${rule.kind}/`), rule)) {
      signal.throwIfAborted();
      sweep.groups += 1;
      try {
        if (await rule.isOver(group)) sweep.removed += await removeGroup(objects, group);
      } catch (error) {
        sweep.failed += 1;
        onFailure(error, `objects of ${rule.kind} are kept until the next sweep`);
      }
    }
  signal.throwIfAborted();
  sweep.leftovers = await objects.removeLeftovers();
  return sweep;
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

async function removeGroup(
  objects: ObjectStore,
  { kind, organizationId, id, name }: ObjectGroup,
): Promise<number> {
  if (name !== undefined) {
    await objects.remove(`${kind}/${organizationId}/${id}/${name}`);
    return 1;
  }
  const key = `${kind}/${organizationId}/${id}`;
  const below = await objects.removeAll(`${key}/`);
  if ((await objects.head(key)) === null) return below;
  await objects.remove(key);
  return below + 1;
}

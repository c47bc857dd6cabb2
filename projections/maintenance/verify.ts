import { streamFilter } from '#events/subjects.ts';
import { differencesOf, type Difference } from './differences.ts';
import { foldDigests, partOf, type Digests } from './fold-digests.ts';
import { createStateReader } from '#src/kernel/event-store/load-state.ts';
import { refuseUnknown } from '#src/kernel/event-store/unreadable.ts';
import { completed, toWrite, foldEvent, type FoldedView } from '../runner/fold.ts';
import type { ProjectionSource } from '../runner/projector.ts';
import { projectionId, type Projection } from '../projection.ts';
import { keysMax, type StoredView, type StoreMaintenance } from '../store/maintenance.ts';
import type { ViewWrite } from '../store/views.ts';

export type VerifyOptions = {
  projections: readonly Projection<unknown>[];
  eventStore: ProjectionSource;
  views: StoreMaintenance;
  signal: AbortSignal;
  /** Verify this many random views of each projection; null: all views. */
  sample: number | null;
  onProgress?: (progress: VerifyProgress) => void;
};

/** Progress of pass `pass` (from 1) of `passes` over the event store. */
export type VerifyProgress = { pass: number; passes: number; sequence: number; end: number };

/** `differences`: the first hundred. `isCut`: there are more, which were not listed. */
export type VerifyResult = {
  projection: string;
  /** Number of compared views. */
  views: number;
  differences: Difference[];
  isCut: boolean;
};

/**
 * Digests in memory at once, per projection: some 200 bytes each. With more views, the event store
 * is read several times, for a part of the keys each time.
 */
const KEYS_AT_ONCE = 250_000;
const DIFFERENCES_MAX = 100;
/** Attempts to compare a view that changes between the read and the fold. */
const TRIES = 5;

/**
 * Folds all events again and compares the result with the store: every field of every view, and the
 * lists that contain it. Runs beside live projectors: a view that differs at first is folded again,
 * up to the checkpoint at which it is read, before it counts as a difference. A view whose events
 * are no longer in the event store cannot be folded: it is not compared.
 * @throws Unavailable
 */
export async function verify(options: VerifyOptions): Promise<VerifyResult[]> {
  const { projections, views, sample } = options;
  const results = projections.map((projection): Check => ({ projection, ...nothingFound() }));
  if (sample !== null) {
    for (const check of results)
      await checkEach(options, check, await views.sample(projectionId(check.projection), sample));
  } else await verifyAll(options, results);
  return results.map(({ projection, ...found }) => ({
    projection: projectionId(projection),
    ...found,
  }));
}

type Findings = Omit<VerifyResult, 'projection'>;
type Check = Findings & { projection: Projection<unknown> };

function nothingFound(): Findings {
  return { views: 0, differences: [], isCut: false };
}

async function verifyAll(options: VerifyOptions, checks: readonly Check[]): Promise<void> {
  const { projections, eventStore, views, signal, onProgress } = options;
  const held = await views.stores();
  const ids = new Set(projections.map(projectionId));
  const counts = held.filter((store) => ids.has(store.projection)).map((store) => store.views);
  const passes = Math.max(1, Math.ceil(Math.max(0, ...counts) / KEYS_AT_ONCE));
  const { firstSequence, lastSequence: end } = await eventStore.info();
  for (let pass = 0; pass < passes; pass += 1) {
    const report = (sequence: number) => onProgress?.({ pass: pass + 1, passes, sequence, end });
    const range = { upTo: end, signal, pass, passes, report };
    const folded = await foldDigests(eventStore, projections, range);
    for (const [index, check] of checks.entries()) {
      const digests = folded[index];
      if (digests !== undefined)
        await compare(options, check, digests, { pass, passes, firstSequence });
    }
  }
  for (const check of checks) {
    const id = projectionId(check.projection);
    for await (const orphans of views.orphans(id))
      for (const { list, key } of orphans)
        addDifference(check, {
          key,
          path: `list ${list}`,
          stored: 'stands in it',
          folded: 'does not',
        });
  }
}

async function compare(
  options: VerifyOptions,
  check: Check,
  { digests, ...folded }: Digests,
  { pass, passes, firstSequence }: { pass: number; passes: number; firstSequence: number },
): Promise<void> {
  const { views } = options;
  const id = projectionId(check.projection);
  for await (const all of views.keys(id)) {
    const keys = all.filter((key) => partOf(key, passes) === pass);
    for (let from = 0; from < keys.length; from += keysMax) {
      const some = keys.slice(from, from + keysMax);
      const held = await views.inspect(id, some);
      const suspect: string[] = [];
      for (const [index, key] of some.entries()) {
        const stored = held.views[index] ?? null;
        const digest = digests.get(key);
        digests.delete(key);
        if (digest === undefined && isArchived(stored, firstSequence)) continue;
        if (digest !== undefined && digest === folded.digestOf(stored)) check.views += 1;
        else suspect.push(key);
      }
      await checkEach(options, check, suspect);
    }
  }
  // The remaining keys are missing in the store, or were added while it was scanned.
  await checkEach(options, check, [...digests.keys()]);
}

/** Folds each view by itself, up to the store's checkpoint, and compares it. */
async function checkEach(
  { eventStore, views, signal }: VerifyOptions,
  check: Check,
  keys: readonly string[],
): Promise<void> {
  const { projection } = check;
  const id = projectionId(projection);
  for (const key of keys) {
    if (check.isCut) return;
    let differences: Difference[] = [];
    let isComparable = true;
    for (let left = TRIES; left > 0; left -= 1) {
      const before = await views.inspect(id, [key]);
      const folded = await foldOne(projection, key, {
        eventStore,
        upTo: before.checkpoint,
        signal,
      });
      const stored = before.views[0] ?? null;
      // Read after the events: the event store may have been truncated before they were.
      const { firstSequence } = await eventStore.info();
      isComparable = folded !== null || !isArchived(stored, firstSequence);
      differences = isComparable ? differencesOf(key, stored, folded) : [];
      if (differences.length === 0) break;
    }
    if (!isComparable) continue;
    check.views += 1;
    for (const difference of differences) addDifference(check, difference);
  }
}

/**
 * Whether all events of the view are before the first one of the event store. A view without a
 * sequence (0) was not written by a projector.
 */
function isArchived(stored: StoredView | null, firstSequence: number): boolean {
  return stored !== null && stored.sequence > 0 && stored.sequence < firstSequence;
}

function addDifference(check: Check, difference: Difference): void {
  if (check.differences.length < DIFFERENCES_MAX) check.differences.push(difference);
  else check.isCut = true;
}

/** The view of one key after the events up to a sequence; null if it has none. */
export async function foldOne(
  projection: Projection<unknown>,
  key: string,
  { eventStore, upTo, signal }: { eventStore: ProjectionSource; upTo: number; signal: AbortSignal },
): Promise<ViewWrite | null> {
  let folded = null as FoldedView<unknown> | null;
  const subjects = [streamFilter(projection.aggregateOf(key))];
  const range = { subjects, upTo, signal, onUnreadable: refuseUnknown };
  const states = createStateReader(eventStore);
  for await (const batch of eventStore.read(range))
    for (const one of batch) {
      const event = await completed(states, one);
      try {
        if (projection.key(event) === key) folded = foldEvent(projection, event);
      } catch {
        // Skipped, as in the projector.
      }
    }
  signal.throwIfAborted();
  return folded === null || folded.view === null ? null : { key, ...toWrite(folded) };
}

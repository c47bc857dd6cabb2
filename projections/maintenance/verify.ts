import { filterOf } from '#events/subjects.ts';
import { differencesOf, type Difference } from './differences.ts';
import { foldDigests, partOf, type Digests } from './fold-digests.ts';
import { asWritten, foldEvent, type FoldedView } from '../fold-event.ts';
import type { ProjectedLog } from '../runner/run-projection.ts';
import { idOf, type Projection } from '../projection.ts';
import { readLog } from './read-log.ts';
import { keysMax, type Upkeep } from '../store/maintenance.ts';
import type { ViewWrite } from '../store/views.ts';

export type VerifyOptions = {
  projections: readonly Projection<unknown>[];
  log: ProjectedLog;
  views: Upkeep;
  signal: AbortSignal;
  /** So many views of each, picked at random, and no others; null: all there is. */
  sample: number | null;
  onProgress?: (progress: VerifyProgress) => void;
};

/** `pass` of `passes` over the log, from 1. */
export type VerifyProgress = { pass: number; passes: number; sequence: number; end: number };

/** `differences`: the first hundred. `isCut`: there are more, that were not looked for. */
export type Verified = {
  projection: string;
  /** Views that were held against the log. */
  views: number;
  differences: Difference[];
  isCut: boolean;
};

/**
 * Keys whose digests are held at once, of one projection: some 200 bytes each. With more views than
 * that the log is read several times, a part of the keys each time.
 */
const KEYS_AT_ONCE = 250_000;
const DIFFERENCES_MAX = 100;
/** A view that changes between being read and being folded is looked at again. */
const TRIES = 5;

/**
 * Folds the log afresh and compares with what the store holds: every view field by field, and the
 * lists it stands in. Views may be read, folded and change meanwhile: what does not agree at first
 * is folded again by itself, up to the checkpoint at which it is read, before it counts.
 * @throws Unavailable
 */
export async function verify(options: VerifyOptions): Promise<Verified[]> {
  const { projections, views, sample } = options;
  const results = projections.map((projection): Check => ({ projection, ...nothingFound() }));
  if (sample !== null) {
    for (const check of results)
      await checkEach(options, check, await views.sample(idOf(check.projection), sample));
  } else await verifyAll(options, results);
  return results.map(({ projection, ...found }) => ({ projection: idOf(projection), ...found }));
}

type Found = Omit<Verified, 'projection'>;
type Check = Found & { projection: Projection<unknown> };

function nothingFound(): Found {
  return { views: 0, differences: [], isCut: false };
}

async function verifyAll(options: VerifyOptions, checks: readonly Check[]): Promise<void> {
  const { projections, log, views, signal, onProgress } = options;
  const held = await views.stores();
  const ids = new Set(projections.map(idOf));
  const counts = held.filter((store) => ids.has(store.projection)).map((store) => store.views);
  const passes = Math.max(1, Math.ceil(Math.max(0, ...counts) / KEYS_AT_ONCE));
  const end = await log.lastSequence();
  for (let pass = 0; pass < passes; pass += 1) {
    const report = (sequence: number) => onProgress?.({ pass: pass + 1, passes, sequence, end });
    const range = { upTo: end, signal, pass, passes, report };
    const folded = await foldDigests(log, projections, range);
    for (const [index, check] of checks.entries()) {
      const digests = folded[index];
      if (digests !== undefined) await compare(options, check, digests, { pass, passes });
    }
  }
  for (const check of checks) {
    const id = idOf(check.projection);
    for await (const strays of views.strays(id))
      for (const { list, key } of strays)
        note(check, { key, path: `list ${list}`, stored: 'stands in it', folded: 'does not' });
  }
}

async function compare(
  options: VerifyOptions,
  check: Check,
  { digests, ...folded }: Digests,
  { pass, passes }: { pass: number; passes: number },
): Promise<void> {
  const { views } = options;
  const id = idOf(check.projection);
  for await (const all of views.keys(id)) {
    const keys = all.filter((key) => partOf(key, passes) === pass);
    for (let from = 0; from < keys.length; from += keysMax) {
      const some = keys.slice(from, from + keysMax);
      const held = await views.held(id, some);
      const suspect = some.filter((key, index) => {
        const stored = held.views[index] ?? null;
        const digest = digests.get(key);
        digests.delete(key);
        return digest === undefined || digest !== folded.digestOf(stored);
      });
      check.views += some.length - suspect.length;
      await checkEach(options, check, suspect);
    }
  }
  // What is left was folded and is not there; or entered while the store was walked through.
  await checkEach(options, check, [...digests.keys()]);
}

/** Folds each view by itself, up to where the store stands, and compares the two. */
async function checkEach(
  { log, views, signal }: VerifyOptions,
  check: Check,
  keys: readonly string[],
): Promise<void> {
  const { projection } = check;
  const id = idOf(projection);
  for (const key of keys) {
    if (check.isCut) return;
    let differences: Difference[] = [];
    for (let left = TRIES; left > 0; left -= 1) {
      const before = await views.held(id, [key]);
      const folded = await foldOne(projection, key, { log, upTo: before.checkpoint, signal });
      differences = differencesOf(key, before.views[0] ?? null, folded);
      if (differences.length === 0) break;
    }
    check.views += 1;
    for (const difference of differences) note(check, difference);
  }
}

function note(check: Check, difference: Difference): void {
  if (check.differences.length < DIFFERENCES_MAX) check.differences.push(difference);
  else check.isCut = true;
}

/** The view of one key after the events up to a sequence; null where it has none. */
export async function foldOne(
  projection: Projection<unknown>,
  key: string,
  { log, upTo, signal }: { log: ProjectedLog; upTo: number; signal: AbortSignal },
): Promise<ViewWrite | null> {
  let folded = null as FoldedView<unknown> | null;
  const subjects = [filterOf(projection.aggregateOf(key))];
  for await (const batch of readLog(log, subjects, upTo, signal))
    for (const event of batch) {
      try {
        if (projection.key(event) === key)
          folded = foldEvent(projection, folded?.view ?? null, event);
      } catch {
        // Passed over, as the projector does.
      }
    }
  return folded === null || folded.view === null ? null : { key, ...asWritten(folded) };
}

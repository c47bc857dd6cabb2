import { hash } from 'node:crypto';
import { filters } from '#events/subjects.ts';
import { createStateReader } from '#src/kernel/event-store/load-state.ts';
import { refuseUnknown } from '#src/kernel/event-store/unreadable.ts';
import { completed, toWrite, foldEvent } from '../runner/fold.ts';
import type { ProjectionSource } from '../runner/projector.ts';
import type { Projection } from '../projection.ts';
import type { StoredView } from '../store/maintenance.ts';

/** The digests of a projection's views after a fresh fold, by key. */
export type Digests = {
  digests: Map<string, string>;
  /** The digest of a stored view. */
  digestOf(held: StoredView | null): string;
};

export type FoldRange = {
  upTo: number;
  signal: AbortSignal;
  /** Fold only the keys of this part (0-based) out of `passes` parts. */
  pass: number;
  passes: number;
  report: (sequence: number) => void;
};

/** Reads the event store once for all of the projections. @throws Unavailable */
export async function foldDigests(
  eventStore: ProjectionSource,
  projections: readonly Projection<unknown>[],
  { upTo, signal, pass, passes, report }: FoldRange,
): Promise<Digests[]> {
  const folds = projections.map((projection) => ({
    projection,
    digests: new Map<string, string>(),
  }));
  const wanted = new Set(projections.flatMap((projection) => projection.subjects));
  // With several filters the server takes longer than with all events, unneeded ones included.
  const subjects = wanted.size === 1 ? [...wanted] : filters.all;
  const range = { subjects, upTo, signal, onUnreadable: refuseUnknown };
  const states = createStateReader(eventStore);
  for await (const batch of eventStore.read(range)) {
    for (const one of batch) {
      const event = await completed(states, one);
      for (const { projection, digests } of folds) {
        try {
          const key = projection.key(event);
          if (key === null || partOf(key, passes) !== pass) continue;
          const folded = foldEvent(projection, event);
          if (folded.view === null) digests.delete(key);
          else {
            const { view, sequence, lists, order } = toWrite(folded);
            digests.set(key, digest(view, sequence, lists, order));
          }
        } catch {
          // Skipped, as in the projector.
        }
      }
    }
    report(batch.at(-1)?.sequence ?? 0);
  }
  signal.throwIfAborted();
  return folds.map(({ digests }) => ({ digests, digestOf }));
}

/** Which of `parts` parts a key belongs to. */
export function partOf(key: string, parts: number): number {
  if (parts === 1) return 0;
  let sum = 0;
  for (let at = 0; at < key.length; at += 1) sum = (sum * 31 + key.charCodeAt(at)) >>> 0;
  return sum % parts;
}

function digestOf(held: StoredView | null): string {
  if (held === null) return '';
  const { view, sequence, lists, order, missingIn } = held;
  if (missingIn.length > 0) return '';
  return digest(view, sequence, lists, lists.length === 0 ? 0 : order);
}

function digest(
  view: string | null,
  sequence: number,
  lists: readonly string[],
  order: number,
): string {
  const place = lists.length === 0 ? '' : `${order} ${lists.join('\n').toWellFormed()}`;
  return hash('sha1', `${sequence} ${place}\n${view}`, 'base64');
}

import { hash } from 'node:crypto';
import { filters } from '#events/subjects.ts';
import { asWritten, foldEvent } from '../fold-event.ts';
import type { ProjectedLog } from '../runner/run-projection.ts';
import type { Projection } from '../projection.ts';
import { readLog } from './read-log.ts';
import type { HeldView } from '../store/maintenance.ts';

/** A projection's views folded afresh, of each its digest alone. */
export type Digests = {
  digests: Map<string, string>;
  /** The same of what the store holds. */
  digestOf(held: HeldView | null): string;
};

export type FoldRange = {
  upTo: number;
  signal: AbortSignal;
  /** Only the keys of this part. */
  pass: number;
  passes: number;
  report: (sequence: number) => void;
};

/** Reads the log once for all of the projections. */
export async function foldDigests(
  log: ProjectedLog,
  projections: readonly Projection<unknown>[],
  { upTo, signal, pass, passes, report }: FoldRange,
): Promise<Digests[]> {
  const folds = projections.map((projection) => ({
    projection,
    digests: new Map<string, string>(),
    /** Needed only where the next view is made of the one before. */
    views: new Map<string, unknown>(),
  }));
  const heard = new Set(projections.flatMap((projection) => projection.subjects));
  // Several filters take the log's server longer than sending what nobody asked for.
  const subjects = heard.size === 1 ? [...heard] : filters.all;
  for await (const batch of readLog(log, subjects, upTo, signal)) {
    for (const event of batch)
      for (const { projection, digests, views } of folds) {
        try {
          const key = projection.key(event);
          if (key === null || partOf(key, passes) !== pass) continue;
          const folded = foldEvent(projection, views.get(key) ?? null, event);
          if (projection.readsView) views.set(key, folded.view);
          if (folded.view === null) digests.delete(key);
          else {
            const { view, sequence, lists, order } = asWritten(folded);
            digests.set(key, digest(view, sequence, lists, order));
          }
        } catch {
          // Passed over, as the projector does.
        }
      }
    report(batch.at(-1)?.sequence ?? 0);
  }
  return folds.map(({ digests }) => ({ digests, digestOf }));
}

/** Which part of so many a key is of. */
export function partOf(key: string, parts: number): number {
  if (parts === 1) return 0;
  let sum = 0;
  for (let at = 0; at < key.length; at += 1) sum = (sum * 31 + key.charCodeAt(at)) >>> 0;
  return sum % parts;
}

function digestOf(held: HeldView | null): string {
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

import type { Filters } from './filters.ts';

/** The filter of POST /api/sessions/stop. */
export type StopFilter = { status?: string; label?: readonly string[] };

const STOPPABLE: readonly string[] = ['creating', 'queued', 'active'];

/** What the list shows, as the API can stop it; null: the API has no filter that is the same. */
export function stopFilterOf({ statuses, labels, text }: Filters): StopFilter | null {
  const [status, ...others] = statuses;
  if (text !== '' || others.length > 0) return null;
  if (status !== undefined && !STOPPABLE.includes(status)) return null;
  if (status === undefined && labels.length === 0) return null;
  return {
    ...(status === undefined ? {} : { status }),
    ...(labels.length === 0 ? {} : { label: labels }),
  };
}

/**
 * Fair queueing between organizations, by start times: each service moves an organization's next
 * start by 1 / weight, and the waiting organization with the earliest next start is served next. So
 * over time the services are shared by weight, however many requests each organization has waiting,
 * and one that has not been served lately is served at once.
 */

/** The shares that organizations have had. Immutable. */
export type Shares = {
  /** The earliest next start of the organizations that waited at the last service. */
  readonly time: number;
  /** Next starts after `time`, by organization; each other organization's is `time`. */
  readonly starts: ReadonlyMap<string, number>;
};

export const noShares: Shares = { time: 0, starts: new Map() };

/**
 * Organizations whose next start is kept. Beyond that, those with the earliest next starts are
 * forgotten: they gain less than one service by it.
 */
export const ORGANIZATIONS_MAX = 1_000;

/** The weight of a request that carries none. */
export const WEIGHT_MIN = 1;

/**
 * The organization to serve next; null: none waits. Of those with the same next start it is the
 * first.
 * @param waiting the waiting organizations, the one with the oldest request first
 */
export function nextOrganization({ time, starts }: Shares, waiting: Iterable<string>) {
  let next: string | null = null;
  let earliest = Infinity;
  for (const organizationId of waiting) {
    const start = starts.get(organizationId) ?? time;
    if (start < earliest) [next, earliest] = [organizationId, start];
  }
  return next;
}

/**
 * The shares after a service, whether or not it was that organization's turn. If no other one
 * waited, what the others have had is forgotten: it would be no reason to let them wait later.
 * @param waiting the organizations that waited, with or without the served one
 */
export function serve(
  shares: Shares,
  organizationId: string,
  weight: number,
  waiting: Iterable<string>,
): Shares {
  const startOf = (id: string) => shares.starts.get(id) ?? shares.time;
  const start = startOf(organizationId);
  const next = start + 1 / Math.max(WEIGHT_MIN, weight);
  let time = start;
  let isAlone = true;
  for (const id of waiting) {
    time = Math.min(time, startOf(id));
    if (id !== organizationId) isAlone = false;
  }
  if (isAlone) return { time, starts: new Map([[organizationId, next]]) };
  const starts = [...shares.starts, [organizationId, next] as const];
  const later = new Map(starts.filter(([, start]) => start > time));
  return { time, starts: later.size > ORGANIZATIONS_MAX ? latest(later) : later };
}

function latest(starts: ReadonlyMap<string, number>): Map<string, number> {
  const sorted = [...starts].toSorted(([, one], [, other]) => other - one);
  return new Map(sorted.slice(0, ORGANIZATIONS_MAX));
}

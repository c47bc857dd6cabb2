/** The events of one aggregate that are not delivered yet. */
export type Lane = {
  /** Their sequences, oldest first, and when they were recorded, ms since the epoch. */
  open: Open[];
  /** Failed attempts at the first of them. */
  attempts: number;
  /** When the next attempt is due, ms since the epoch; 0: now. */
  nextAt: number;
  /** When a probe is due before that, ms since the epoch (`probes.ts`). */
  probeAt?: number;
  /** Failed probes of the first event, and when the last of them began, ms since the epoch. */
  probes?: number;
  probedAt?: number;
  /** Until when the receiver asked for no attempt (`Retry-After`), ms since the epoch. */
  askedUntil?: number;
};
export type Open = { sequence: number; at: number };

/** How far a webhook has come. It is stored after each send, so that nothing is left out. */
export type Progress = {
  /** Every event up to here is delivered or not wanted, but for those in the lanes. */
  position: number;
  lanes: Record<string, Lane>;
  /** The webhook's `starts` and number of replays that are applied. */
  starts: number;
  replays: number;
  /** Since when attempts fail, ISO 8601; null: the last one of each lane was well. */
  failingSince: string | null;
  last: { at: string; outcome: Outcome; status: number | null; eventId: string } | null;
};

/** `gone`: answered 410. `lost`: the event could not be read any more. */
export type Outcome = 'delivered' | 'failed' | 'gone' | 'lost';

/** Lanes with failed attempts; with more of them the webhook as a whole waits. */
export const BLOCKED_LANES_MAX = 32;
/** Events that are open at once; with more of them the webhook reads no further. */
export const OPEN_MAX = 1_000;

export function newProgress(position: number): Progress {
  const none = { lanes: {}, starts: 0, replays: 0, failingSince: null, last: null };
  return { position, ...none };
}

/** What of a webhook changes its progress: both only grow. */
export type Orders = { starts: number; replay?: { number: number; from: number } };

/** Begins again after it was enabled or got another URL, and at the event that a replay names. */
export function follow(progress: Progress, { starts, replay }: Orders): Progress {
  let next = progress;
  if (replay !== undefined && replay.number > next.replays)
    next = {
      ...next,
      replays: replay.number,
      position: replay.from - 1,
      lanes: {},
      failingSince: null,
    };
  if (starts > next.starts) {
    const lanes = Object.entries(next.lanes).map(([name, { open }]) => [
      name,
      { open, attempts: 0, nextAt: 0 },
    ]);
    next = { ...next, starts, lanes: Object.fromEntries(lanes), failingSince: null };
  }
  return next;
}

export function openCount({ lanes }: Progress): number {
  return Object.values(lanes).reduce((sum, { open }) => sum + open.length, 0);
}

/** Lanes that wait because of failures. */
export function blockedCount({ lanes }: Progress): number {
  return Object.values(lanes).filter(({ attempts }) => attempts > 0).length;
}

/** How many more events may be opened. */
export function roomOf(progress: Progress): number {
  if (blockedCount(progress) >= BLOCKED_LANES_MAX) return 0;
  return Math.max(0, OPEN_MAX - openCount(progress));
}

/** Adds an event at the end of its lane. */
export function opened(progress: Progress, name: string, event: Open): Progress {
  const lane = progress.lanes[name] ?? { open: [], attempts: 0, nextAt: 0 };
  const lanes = { ...progress.lanes, [name]: { ...lane, open: [...lane.open, event] } };
  return { ...progress, position: event.sequence, lanes };
}

export type Attempt = { at: string; outcome: Outcome; status: number | null; eventId: string };

/** The first event of a lane is done, delivered or lost. */
export function done(progress: Progress, name: string, attempt: Attempt): Progress {
  const { [name]: lane, ...others } = progress.lanes;
  const [, ...open] = lane?.open ?? [];
  const lanes =
    open.length === 0 ? others : { ...others, [name]: { open, attempts: 0, nextAt: 0 } };
  const next = { ...progress, lanes, last: attempt };
  return { ...next, failingSince: blockedCount(next) === 0 ? null : next.failingSince };
}

/** An attempt at the first event of a lane failed. @param nextAt ms since the epoch */
export function failed(
  progress: Progress,
  name: string,
  attempt: Attempt,
  nextAt: number,
): Progress {
  const lane = progress.lanes[name];
  if (lane === undefined) return progress;
  const { probeAt: _, ...waiting } = lane;
  const attempts = lane.attempts + 1;
  const lanes = { ...progress.lanes, [name]: { ...waiting, attempts, nextAt } };
  return {
    ...progress,
    lanes,
    last: attempt,
    failingSince: progress.failingSince ?? attempt.at,
  };
}

/** When the lane's next attempt or probe is due, ms since the epoch. */
export function dueAt({ nextAt, probeAt = Infinity }: Lane): number {
  return Math.min(nextAt, probeAt);
}

/** When the next attempt is due, ms since the epoch; null: none but in the lanes of `besides`. */
export function nextDue({ lanes }: Progress, besides: readonly string[]): number | null {
  const times = Object.entries(lanes)
    .filter(([name]) => !besides.includes(name))
    .map(([, lane]) => dueAt(lane));
  return times.length === 0 ? null : Math.min(...times);
}

/** When the oldest event that is not delivered was recorded, ms since the epoch; null: none is. */
export function oldestOpen({ lanes }: Progress): number | null {
  const times = Object.values(lanes).map(({ open }) => open[0]?.at ?? Infinity);
  return times.length === 0 ? null : Math.min(...times);
}

import { BLOCKED_LANES_MAX, blockedCount, type Attempt, type Progress } from './progress.ts';

/**
 * Probes are attempts before a pause is over. They find out that an endpoint is back, hours before
 * the long pauses would, and count as no attempt: they bring the disabling no nearer.
 */

/** A webhook that waits as a whole probes so often; a lane is probed no more often. */
export const PROBE_EVERY_MS = 5 * 60_000;
/** Lanes of an endpoint that is back become due so far apart. */
const SPREAD_MS = 100;

/**
 * While nothing more is read because too many lanes are blocked, the lane whose last probe is the
 * oldest is probed, some time after the last attempt: the events of one session may be what fails.
 * @param sending names of the lanes with a send under way, which is a probe itself
 */
export function probing(
  progress: Progress,
  sending: readonly string[],
  everyMs = PROBE_EVERY_MS,
): Progress {
  if (blockedCount(progress) < BLOCKED_LANES_MAX || sending.length > 0) return progress;
  const lanes = Object.entries(progress.lanes);
  if (lanes.some(([, { probeAt }]) => probeAt !== undefined)) return progress;
  const asked = lanes.map(([, { askedUntil = 0 }]) => askedUntil);
  const probeAt = Math.max(Date.parse(progress.last?.at ?? '') + everyMs || 0, ...asked);
  if (lanes.some(([, { nextAt }]) => nextAt <= probeAt)) return progress;
  const [first] = lanes.toSorted(
    ([, { probedAt: one = 0, nextAt }], [, { probedAt: other = 0, nextAt: otherNextAt }]) =>
      one - other || nextAt - otherNextAt,
  );
  if (first === undefined) return progress;
  const [name, lane] = first;
  return { ...progress, lanes: { ...progress.lanes, [name]: { ...lane, probeAt } } };
}

/** A probe of a lane failed: the lane waits for its next attempt as before. */
export function probeFailed(progress: Progress, name: string, attempt: Attempt): Progress {
  const lane = progress.lanes[name];
  if (lane === undefined) return progress;
  const { probeAt: _, ...waiting } = lane;
  const probed = { probes: (lane.probes ?? 0) + 1, probedAt: Date.parse(attempt.at) };
  const lanes = { ...progress.lanes, [name]: { ...waiting, ...probed } };
  return { ...progress, lanes, last: attempt };
}

/** The receiver asked for no attempt until then (ms since the epoch): no probe comes before. */
export function asked(progress: Progress, name: string, askedUntil: number): Progress {
  const lanes = Object.entries(progress.lanes).map(([other, lane]) => {
    const until = other === name ? { askedUntil, nextAt: Math.max(lane.nextAt, askedUntil) } : {};
    const { probeAt } = lane;
    const later = probeAt === undefined ? {} : { probeAt: Math.max(probeAt, askedUntil) };
    return [other, { ...lane, ...until, ...later }];
  });
  return { ...progress, lanes: Object.fromEntries(lanes) };
}

/**
 * The endpoint has taken a delivery: lanes that wait because of failures are probed soon, one after
 * the other, each no earlier than its receiver asked for.
 * @param now ms since the epoch
 */
export function recovered(progress: Progress, now: number, everyMs = PROBE_EVERY_MS): Progress {
  let soon = now;
  const lanes = Object.entries(progress.lanes).map(([name, lane]) => {
    const { attempts, nextAt, askedUntil = 0, probedAt = -Infinity } = lane;
    if (attempts === 0 || lane.probeAt !== undefined) return [name, lane];
    const probeAt = Math.max(soon, askedUntil, probedAt + everyMs);
    if (probeAt >= nextAt) return [name, lane];
    soon += SPREAD_MS;
    return [name, { ...lane, probeAt }];
  });
  return { ...progress, lanes: Object.fromEntries(lanes) };
}

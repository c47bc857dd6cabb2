/**
 * How far a projection is behind the log. The log's end is looked at now and then; a look that the
 * checkpoint has not reached says since when, at the latest, there is something to fold.
 */
export type LagMeter = {
  /** The log's end for the projection, as it was just seen. */
  sawEnd(sequence: number): void;
  reached(checkpoint: number): void;
  lag(): Lag;
};

export type Lag = {
  /** Events, at most: sequences of the log, some of which may be of other projections. */
  events: number;
  /** Age of the oldest look at the log's end that is not reached; 0 where all are. */
  seconds: number;
};

/** Behind by more than this, a projection is late; one that is live is behind by milliseconds. */
export const lagSecondsMax = 10;

/** Looks kept: at one a second, ten minutes. Beyond it the second oldest goes: the age stays. */
const LOOKS_MAX = 600;

export function createLagMeter(now: () => number): LagMeter {
  let looks: { sequence: number; atMs: number }[] = [];
  let checkpoint = 0;
  let end = 0;

  return {
    sawEnd(sequence) {
      end = sequence;
      if (sequence <= checkpoint) return;
      looks.push({ sequence, atMs: now() });
      if (looks.length > LOOKS_MAX) looks.splice(1, 1);
    },
    reached(reachedTo) {
      checkpoint = reachedTo;
      looks = looks.filter(({ sequence }) => sequence > reachedTo);
    },
    lag() {
      const [oldest] = looks;
      const seconds = oldest === undefined ? 0 : (now() - oldest.atMs) / 1000;
      return { events: Math.max(0, end - checkpoint), seconds };
    },
  };
}

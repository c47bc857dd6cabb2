/**
 * Measures how far a projection is behind the event store. The end of the store is sampled from
 * time to time; the oldest sample that the checkpoint has not reached gives the age of the lag.
 */
export type LagMeter = {
  /** Adds a sample: the last sequence of the event store. */
  observeEnd(sequence: number): void;
  observeCheckpoint(checkpoint: number): void;
  lag(): Lag;
};

export type Lag = {
  /** Upper bound of the events behind: sequences, some of which may be of other projections. */
  events: number;
  /** Age of the oldest sample that the checkpoint has not reached; 0: none. */
  seconds: number;
};

/** A projection that is behind by more is late; a live one is behind by milliseconds. */
export const lagSecondsMax = 10;

/** Ten minutes of samples at one a second. Beyond it the second oldest goes: the age stays. */
const SAMPLES_MAX = 600;

export function createLagMeter(now: () => number): LagMeter {
  let samples: { sequence: number; atMs: number }[] = [];
  let checkpoint = 0;
  let end = 0;

  return {
    observeEnd(sequence) {
      end = sequence;
      if (sequence <= checkpoint) return;
      samples.push({ sequence, atMs: now() });
      if (samples.length > SAMPLES_MAX) samples.splice(1, 1);
    },
    observeCheckpoint(newCheckpoint) {
      checkpoint = newCheckpoint;
      samples = samples.filter(({ sequence }) => sequence > newCheckpoint);
    },
    lag() {
      const [oldest] = samples;
      const seconds = oldest === undefined ? 0 : (now() - oldest.atMs) / 1000;
      return { events: Math.max(0, end - checkpoint), seconds };
    },
  };
}

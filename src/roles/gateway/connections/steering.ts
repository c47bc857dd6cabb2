/**
 * A hand-off that a person has taken: until it is over, that person alone steers the session's
 * browser.
 */
export type Hold = { handoffId: string; untilMs: number };

/** Who steers the browser of one session. */
export type Steering = {
  /** The hand-off that is taken; null: none, everybody steers who may. */
  heldBy(): string | null;
  /** The hold as of this event; one that is older than what is known changes nothing. */
  set(hold: Hold | null, sequence: number): void;
} & Disposable;

/** The longest delay of a timer; no hand-off lasts for so long. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * A hold ends with its time, too: no event is waited for, so that automation goes on while no
 * timekeeper runs. The person is cut at the same time (`Connection.endIn`).
 * @param now ms since the epoch
 * @param onChange called whenever a hold begins or ends
 */
export function createSteering(now: () => number, onChange: () => void): Steering {
  let hold: Hold | null = null;
  let knownAt = -1;
  let timer: NodeJS.Timeout | undefined;

  function change(to: Hold | null): void {
    clearTimeout(timer);
    const before = hold?.handoffId;
    hold = to;
    if (hold !== null) timer = setTimeout(expire, delayTo(hold)).unref();
    if (hold?.handoffId !== before) onChange();
  }
  /** Timers may fire a moment early by the clock. */
  function expire(): void {
    if (hold !== null && now() < hold.untilMs) timer = setTimeout(expire, delayTo(hold)).unref();
    else change(null);
  }
  function delayTo({ untilMs }: Hold): number {
    return Math.min(Math.max(untilMs - now(), 1), TIMER_MS_MAX);
  }
  return {
    heldBy: () => hold?.handoffId ?? null,
    set(to, sequence) {
      if (sequence < knownAt) return;
      knownAt = sequence;
      change(to !== null && now() < to.untilMs ? to : null);
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}

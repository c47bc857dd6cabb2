import type { ScreenshotAnswer } from '#src/kernel/messaging/screenshots.ts';

/** A session's browser is asked for a picture at most once in this time. */
export const EVERY_MS = 1_000;

/** One browser's pictures: those that wait, and when the last one was begun. */
export type Turn = {
  /** The end of the last capture, in the order of their coming. */
  last: Promise<unknown>;
  begunAt: number;
  /** By width. */
  waiting: Map<number, Promise<ScreenshotAnswer>>;
  /** `until`: by performance.now(). */
  failure: { answer: ScreenshotAnswer; until: number } | null;
};

/** The turns of all browsers that were asked for a picture lately. */
export type Turns = {
  of(workloadId: string): Turn;
  /** Forgets it once nothing waits, its second is over and its failure too. */
  forgetLater(workloadId: string): void;
  size(): number;
};

export function createTurns(): Turns {
  const turns = new Map<string, Turn>();
  return {
    of(workloadId) {
      const known = turns.get(workloadId);
      if (known !== undefined) return known;
      const last = Promise.resolve();
      const turn: Turn = { last, begunAt: -Infinity, waiting: new Map(), failure: null };
      turns.set(workloadId, turn);
      return turn;
    },
    forgetLater(workloadId) {
      const turn = turns.get(workloadId);
      if (turn === undefined) return;
      function forget(): void {
        const isOver = turn?.waiting.size === 0 && performance.now() >= quietUntil(turn);
        if (isOver && turns.get(workloadId) === turn) turns.delete(workloadId);
      }
      setTimeout(forget, Math.max(0, quietUntil(turn) - performance.now()) + 1).unref();
    },
    size: () => turns.size,
  };
}

function quietUntil({ begunAt, failure }: Turn): number {
  return Math.max(begunAt + EVERY_MS, failure?.until ?? 0);
}

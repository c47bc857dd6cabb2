import { BoundedMap } from '#src/kernel/async/bounded-map.ts';
import { createFramebuffer, type Framebuffer } from './framebuffer.ts';
import type { Segment } from './segment-format.ts';

/** A segment as an index has it; times are milliseconds since the epoch. */
export type ReplaySegment = { name: string; startedAt: number; endedAt: number; full: boolean };

/** Shows a recording at any moment. It runs in the page that plays it, and in the command line. */
export type Replay = {
  /** What is shown; without a size before the first moment of the recording. */
  readonly screen: Framebuffer;
  /**
   * Shows what the screen showed at the moment: from where it is, or from the last whole screen
   * before. One at a time.
   * @returns whether the picture is another one now
   * @throws what the loading of a segment throws
   */
  show(at: number): Promise<boolean>;
  /** When the picture changes next; null: never. @throws as `show` */
  nextChange(): Promise<number | null>;
};

/** Segments that are kept: going back a little loads nothing. */
const KEPT_MAX = 16;

/**
 * @param segments in their order; a longer list may follow, see `segments`
 * @param load reads and inflates a segment
 */
export function createReplay(
  segments: () => readonly ReplaySegment[],
  load: (name: string) => Promise<Segment>,
): Replay {
  const screen = createFramebuffer();
  const kept = new BoundedMap<string, Promise<Segment>>(KEPT_MAX);
  /** The segment and the message that come next. */
  let next = { segment: 0, message: 0 };
  let shownAt = Number.NEGATIVE_INFINITY;

  function loaded({ name }: ReplaySegment): Promise<Segment> {
    const known = kept.get(name) ?? load(name);
    kept.set(name, known);
    // A failure is not kept: the next try may succeed.
    known.catch(() => kept.delete(name));
    return known;
  }

  /** Where to begin for the moment: here, or at the last whole screen before it. */
  function startFor(at: number): typeof next {
    const whole = segments().findLastIndex(({ full, startedAt }) => full && startedAt <= at);
    const isBehind = at < shownAt || whole > next.segment;
    return isBehind ? { segment: Math.max(0, whole), message: 0 } : next;
  }

  return {
    screen,
    async show(at) {
      next = startFor(at);
      if (at < shownAt && (segments()[0]?.startedAt ?? at + 1) > at) screen.resize(0, 0);
      shownAt = at;
      let isChanged = false;
      for (;;) {
        const named = segments()[next.segment];
        if (named === undefined || named.startedAt > at) return isChanged;
        const { width, height, full, messages } = await loaded(named);
        if (full && next.message === 0) screen.resize(width, height);
        for (const message of messages.slice(next.message)) {
          if (message.at > at) return isChanged;
          screen.apply(message.bytes);
          next.message += 1;
          isChanged = true;
        }
        next = { segment: next.segment + 1, message: 0 };
      }
    },
    async nextChange() {
      const named = segments()[next.segment];
      if (named === undefined) return null;
      if (next.message === 0) return named.startedAt;
      const message = (await loaded(named)).messages[next.message];
      return message?.at ?? segments()[next.segment + 1]?.startedAt ?? null;
    },
  };
}

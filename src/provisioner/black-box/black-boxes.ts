import { constants } from 'node:os';
import type { BlackBox } from '#events/session/black-box.ts';
import type { SessionState } from '#events/session.ts';
import type { SessionIdentity } from '#src/domain/session/session.ts';
import type { Logger } from '#src/telemetry/logger.ts';
import type { BrowserExit, RunningBrowser } from '../browsers/browsers.ts';
import type { ObservedTarget, ObserverPart } from '../observer/part.ts';
import { followPage, type FollowedPage } from './follow-page.ts';
import { blackBoxOf, createNotes, type Ending, type Notes } from './notes.ts';

/** What browsers told while a session used them, for the events of the sessions' ends. */
export type BlackBoxes = {
  /** What a browser tells from here on is its session's, unless that wants none. */
  begin(browser: RunningBrowser, session: SessionState): void;
  /**
   * What the browser told, and forgets it. To be called before the browser is stopped. Null: no
   * session used it, or wanted this, or pages did nothing. Takes a second at most.
   * @param exit how it ended by itself
   */
  end(workloadId: string, exit?: BrowserExit): Promise<BlackBox | null>;
};

type Box = {
  notes: Notes;
  session: SessionIdentity | null;
  browser: RunningBrowser | null;
  /** False: its session wants nothing noted. */
  isWanted: boolean;
  pages: Map<ObservedTarget, FollowedPage>;
};

export type BlackBoxOptions = { log: Pick<Logger, 'debug'> };

/** The black boxes of a server, and the part of the observer that fills them. */
export function createBlackBoxes({ log }: BlackBoxOptions): BlackBoxes & { part: ObserverPart } {
  const boxes = new Map<string, Box>();

  function boxOf(workloadId: string): Box {
    const known = boxes.get(workloadId);
    if (known !== undefined) return known;
    const box: Box = {
      notes: createNotes(),
      session: null,
      browser: null,
      isWanted: true,
      pages: new Map(),
    };
    boxes.set(workloadId, box);
    return box;
  }
  async function attached(target: ObservedTarget): Promise<void> {
    const box = boxOf(target.workloadId);
    if (!box.isWanted) return;
    const page = await followPage(target, () => box.notes);
    if (target.closed.aborted) return;
    box.pages.set(target, page);
    target.closed.addEventListener('abort', () => box.pages.delete(target), { once: true });
    // It was begun meanwhile.
    if (!box.isWanted) await page.stop();
  }

  return {
    part: { name: 'black box', pages: { attached } },
    begin(browser, { organizationId, id, blackBox }) {
      const box = boxOf(browser.workloadId);
      box.session = { organizationId, id };
      box.browser = browser;
      box.notes = createNotes();
      box.isWanted = blackBox !== false;
      if (box.isWanted) return;
      for (const page of box.pages.values()) void page.stop();
    },
    async end(workloadId, exit) {
      const box = boxes.get(workloadId);
      boxes.delete(workloadId);
      if (box === undefined || box.session === null || !box.isWanted) return null;
      try {
        return blackBoxOf(box.notes, exit === undefined ? {} : endingOf(exit));
      } catch (error) {
        // The end of a session matters more than what is known about it.
        log.debug({ err: error, workloadId }, 'failed to read a black box');
        return null;
      }
    },
  };
}

function endingOf({ exitCode, signal = signalOf(exitCode), reason }: BrowserExit): Ending {
  return {
    ...(exitCode === null ? {} : { exitCode }),
    ...(signal === undefined ? {} : { signal }),
    ...(reason === 'out_of_memory' ? { outOfMemory: true as const } : {}),
  };
}

/** A container exits with 128 and the number of the signal that ended the browser in it. */
function signalOf(exitCode: number | null): string | undefined {
  const number = (exitCode ?? 0) - 128;
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0];
}

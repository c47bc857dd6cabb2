import { constants } from 'node:os';
import type { BlackBox } from '#events/session/black-box.ts';
import type { SessionState } from '#events/session.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { BrowserExit, Browsers, RunningBrowser } from '#src/browsers/browsers.ts';
import type { takePicture } from '#src/browsers/chromium/screenshot.ts';
import type { ObservedTarget, ObserverPart } from '#src/browsers/observer/part.ts';
import { followPage, type FollowedPage } from './follow-page.ts';
import { blackBoxOf, createNotes, type Ending } from './notes.ts';
import { createSampler, type Sampled } from './sampler.ts';
import { createThumbnails } from './thumbnails.ts';

/** What browsers told while a session used them, for the events of the sessions' ends. */
export type BlackBoxes = {
  /** What a browser tells from here on is its session's, unless that wants none. */
  begin(browser: RunningBrowser, session: SessionState): void;
  /** The session's state has changed. While a person has it by a hand-off, no picture is taken. */
  follow(session: ActiveSession): void;
  /**
   * What the browser told, and forgets it. To be called before the browser is stopped. Null: no
   * session used it, or wanted this, or pages did nothing. Never rejects, and takes half a second
   * at most; the last picture is stored after that.
   * @param exit how it ended by itself
   */
  end(workloadId: string, exit?: BrowserExit): Promise<BlackBox | null>;
};

type ActiveSession = Extract<SessionState, { status: 'active' }>;

type Box = Sampled & {
  /** False: its session wants nothing noted. */
  isWanted: boolean;
  pages: Map<ObservedTarget, Promise<FollowedPage>>;
};

export type BlackBoxOptions = {
  log: Pick<Logger, 'debug' | 'warn'>;
  objects: Pick<ObjectStore, 'put'>;
  browsers: Pick<Browsers, 'memoryUsed'>;
  /** `takePicture` by default. */
  take?: typeof takePicture;
  /** How often a browser's picture is taken and its memory read; each minute by default. */
  sampleEveryMs?: number;
};

/** The black boxes of a server, and the part of the observer that fills them. */
export function createBlackBoxes(
  options: BlackBoxOptions,
): BlackBoxes & { part: ObserverPart } & AsyncDisposable {
  const { log } = options;
  const boxes = new Map<string, Box>();
  const thumbnails = createThumbnails(options);
  const sampler = createSampler({
    ...options,
    thumbnails,
    all: () => [...boxes.values()].filter(({ isWanted }) => isWanted),
  });

  function boxOf(workloadId: string): Box {
    const known = boxes.get(workloadId);
    if (known !== undefined) return known;
    const box: Box = { ...emptyBox(), pages: new Map() };
    boxes.set(workloadId, box);
    return box;
  }
  async function attached(target: ObservedTarget): Promise<void> {
    const { workloadId, closed } = target;
    if (closed.aborted) return;
    const box = boxOf(workloadId);
    if (!box.isWanted) return;
    const following = followPage(target, () => box.notes);
    box.pages.set(target, following);
    const forget = () => {
      box.pages.delete(target);
      // It had no session yet, or opened this page while it was being stopped.
      const isOver = box.session === null && box.pages.size === 0;
      if (isOver && boxes.get(workloadId) === box) boxes.delete(workloadId);
    };
    closed.addEventListener('abort', forget, { once: true });
    await following;
  }

  return {
    part: { name: 'black box', pages: { attached } },
    begin(browser, { organizationId, id, blackBox, handoff }) {
      const box = boxOf(browser.workloadId);
      const session = { organizationId, id };
      const isWanted = blackBox !== false;
      const isHandedOff = handoff?.status === 'taken';
      Object.assign(box, { ...emptyBox(), session, browser, isWanted, isHandedOff });
      if (isWanted) return;
      for (const page of box.pages.values())
        // One that closed meanwhile, or hangs, is not listened to.
        page.then((followed) => followed.stop()).catch(() => undefined);
    },
    follow({ workload: { workloadId }, id, handoff }) {
      const box = boxes.get(workloadId);
      if (box?.session?.id === id) box.isHandedOff = handoff?.status === 'taken';
    },
    async end(workloadId, exit) {
      const box = boxes.get(workloadId);
      boxes.delete(workloadId);
      if (box === undefined || box.session === null || !box.isWanted) return null;
      try {
        if (exit === undefined) await sampler.last(box);
        const told = blackBoxOf(box.notes, endingOf(box, exit));
        if (box.picture !== null) thumbnails.store(box.session, box.picture);
        return told;
      } catch (error) {
        // The end of a session matters more than what is known about it.
        log.warn({ err: error, workloadId }, 'failed to read a black box');
        return null;
      }
    },
    async [Symbol.asyncDispose]() {
      sampler[Symbol.dispose]();
      await thumbnails[Symbol.asyncDispose]();
    },
  };
}

function emptyBox(): Omit<Box, 'pages'> {
  return {
    notes: createNotes(),
    session: null,
    browser: null,
    isWanted: true,
    isHandedOff: false,
    picture: null,
    memoryPeakBytes: 0,
    sampledAt: -Infinity,
  };
}

/** @param exit how the browser ended by itself */
function endingOf({ picture, memoryPeakBytes: sampledBytes }: Sampled, exit?: BrowserExit): Ending {
  const { exitCode = null, signal = signalOf(exitCode), reason, memoryPeakBytes = 0 } = exit ?? {};
  const peakBytes = Math.max(sampledBytes, memoryPeakBytes);
  return {
    ...(exitCode === null ? {} : { exitCode }),
    ...(signal === undefined ? {} : { signal }),
    ...(reason === 'out_of_memory' ? { outOfMemory: true as const } : {}),
    ...(peakBytes === 0 ? {} : { memoryPeakBytes: peakBytes }),
    ...(picture === null ? {} : { thumbnailBytes: picture.length }),
  };
}

/** A container exits with 128 and the number of the signal that ended the browser in it. */
function signalOf(exitCode: number | null): string | undefined {
  const number = (exitCode ?? 0) - 128;
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0];
}

import { createHash } from 'node:crypto';
import { createFairSlots } from '#src/kernel/async/fair-slots.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import {
  RETRY_AFTER_MS,
  type Screenshot,
  type ScreenshotAnswer,
  type ScreenshotQuestion,
} from '#src/kernel/messaging/screenshots.ts';
import type { Answer } from '#src/kernel/messaging/server-questions.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Metrics } from '#src/kernel/telemetry/metrics.ts';
import { takePicture, type PictureOptions } from '#src/browsers/chromium/screenshot.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import type { ServedBrowsers } from '#src/browsers/served-browsers.ts';
import { createPictureCache } from './picture-cache.ts';
import { createTurns, EVERY_MS, type Turn } from './turns.ts';

/** A browser that has no picture by then is given up, and left alone for a while. */
const WITHIN_MS = 3_000;
/** How long a capture waits for its slot. */
const SLOT_WITHIN_MS = 1_000;
/** Widths that may wait for their turn at one browser; each takes a second. */
const WAITING_MAX = 3;
/** Pictures that are made at once: each takes some 20 ms of a core, and a hung browser 3 s. */
const SLOTS = { slots: 8, slotsPerOwner: 4, places: 256, placesPerOwner: 64 };
/**
 * The widths that pictures are made in: what is asked for is rounded down to one, so that callers
 * who ask for nearly the same width share a picture.
 */
const WIDTHS = [64, 160, 320, 480, 640, 960, 1280, 1600, 1920, 2560, 3840];
/** Tried in this order until the picture is small enough; the last ones at half the width. */
const QUALITIES = [70, 40, 20] as const;

export type ScreenshotsOptions = {
  served: ServedBrowsers;
  log: Pick<Logger, 'warn'>;
  screenshotMade?: Metrics['screenshotMade'];
  take?: typeof takePicture;
  withinMs?: number;
};

/**
 * Answers questions for screenshots of this server's sessions. However many ask, a browser makes at
 * most one picture a second: questions that come together share it, and so do those within the
 * second after. Another width waits for its turn.
 */
export function createScreenshots(options: ScreenshotsOptions): Answer<'screenshot'> {
  const { served, log, take = takePicture, withinMs = WITHIN_MS } = options;
  const { screenshotMade = () => undefined } = options;
  const cache = createPictureCache(EVERY_MS);
  const slots = createFairSlots(SLOTS);
  const turns = createTurns();

  /** Makes the picture when it is the browser's turn. */
  async function make(
    question: ScreenshotQuestion,
    turn: Turn,
    width: number,
    bytesMax: number,
  ): Promise<ScreenshotAnswer> {
    const { organizationId, sessionId, workloadId } = question;
    await sleep(Math.max(0, turn.begunAt + EVERY_MS - performance.now()));
    if (turn.failure !== null) return turn.failure.answer;
    const late = AbortSignal.timeout(SLOT_WITHIN_MS);
    const slot = slots.acquire(organizationId, late);
    if (slot === null) return BUSY;
    using _ = await slot;
    if (late.aborted) return BUSY;
    const browser = browserOf(served, question);
    if (browser === null) return NOT_HERE;
    turn.begunAt = performance.now();
    try {
      const bytes = await takeSmall(take, browser.cdp, { width, bytesMax }, withinMs);
      screenshotMade('made', performance.now() - turn.begunAt);
      const picture = { bytes, etag: etagOf(bytes) };
      cache.put(`${workloadId} ${width}`, picture);
      return { kind: 'image', ...picture };
    } catch (error) {
      // The session may have ended meanwhile, and its browser with it.
      if (browserOf(served, question) === null) return NOT_HERE;
      screenshotMade('failed', performance.now() - turn.begunAt);
      log.warn({ err: error, sessionId, workloadId }, 'a browser has made no screenshot');
      turn.failure = { answer: FAILED, until: performance.now() + RETRY_AFTER_MS };
      return FAILED;
    }
  }

  /** The capture of this width that waits, or a new one behind those that wait. */
  function shared(
    question: ScreenshotQuestion,
    width: number,
    bytesMax: number,
  ): Promise<ScreenshotAnswer> {
    const { workloadId } = question;
    const turn = turns.of(workloadId);
    if (turn.failure !== null && performance.now() >= turn.failure.until) turn.failure = null;
    if (turn.failure !== null) return Promise.resolve(turn.failure.answer);
    const known = turn.waiting.get(width);
    if (known !== undefined) return known;
    if (turn.waiting.size >= WAITING_MAX) return Promise.resolve(BUSY);
    const made = turn.last
      .then(() => make(question, turn, width, bytesMax))
      .finally(() => {
        turn.waiting.delete(width);
        turns.forgetLater(workloadId);
      });
    turn.last = made.catch(() => undefined);
    turn.waiting.set(width, made);
    return made;
  }

  return async (question, bytesMax) => {
    // Before all else: what is kept is for the organization of the session alone.
    if (browserOf(served, question) === null) return NOT_HERE;
    const width = roundedDown(question.maxWidth);
    const kept = cache.get(`${question.workloadId} ${width}`);
    const answer: ScreenshotAnswer =
      kept === null ? await shared(question, width, bytesMax) : { kind: 'image', ...kept };
    return answer.kind === 'image' ? unlessKnown(answer, question.known) : answer;
  };
}

const NOT_HERE: ScreenshotAnswer = { kind: 'not-here' };
const FAILED: ScreenshotAnswer = { kind: 'no-picture', retryAfterMs: RETRY_AFTER_MS };
const BUSY: ScreenshotAnswer = { kind: 'busy', retryAfterMs: EVERY_MS };

/** The browser that serves this session of this organization now; null: it is not here. */
function browserOf(
  served: ServedBrowsers,
  asked: Pick<ScreenshotQuestion, 'organizationId' | 'sessionId' | 'workloadId'>,
): RunningBrowser | null {
  const pooled = served.get(asked.workloadId);
  if (pooled?.phase !== 'busy' || pooled.session === null) return null;
  const { organizationId, id } = pooled.session;
  return organizationId === asked.organizationId && id === asked.sessionId ? pooled.browser : null;
}

function roundedDown(width: number): number {
  return WIDTHS.findLast((one) => one <= width) ?? Math.min(...WIDTHS);
}

/** @throws Error if there is no picture by then, or none is small enough */
async function takeSmall(
  take: typeof takePicture,
  address: RunningBrowser['cdp'],
  { width, bytesMax }: { width: number; bytesMax: number },
  withinMs: number,
): Promise<Buffer> {
  const signal = AbortSignal.timeout(withinMs);
  const widths = [width, Math.ceil(width / 2)];
  const tries = widths.flatMap((one): PictureOptions[] =>
    QUALITIES.map((quality) => ({ width: one, quality })),
  );
  for (const options of tries) {
    const bytes = await take(address, options, signal);
    if (bytes.length <= bytesMax) return bytes;
  }
  throw new Error(`no picture is smaller than ${bytesMax} bytes`);
}

function etagOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
}

function unlessKnown(
  picture: Screenshot & { kind: 'image' },
  known: readonly string[],
): ScreenshotAnswer {
  const { etag } = picture;
  return known.includes(etag) ? { kind: 'unchanged', etag } : picture;
}

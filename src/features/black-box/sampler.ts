import { within } from '#src/kernel/async/timeout.ts';
import type { SessionIdentity } from '#src/kernel/domain/session/session.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Browsers, RunningBrowser } from '#src/browsers/browsers.ts';
import type { Notes } from './notes.ts';
import type { Thumbnails } from './thumbnails.ts';

/** What is sampled of a browser, for the end of its session. */
export type Sampled = {
  notes: Notes;
  session: SessionIdentity | null;
  browser: RunningBrowser | null;
  /** A person has the session by a hand-off: no picture is taken meanwhile. */
  isHandedOff: boolean;
  /** The last one that it showed. */
  picture: Buffer | null;
  memoryPeakBytes: number;
  /** By performance.now(). */
  sampledAt: number;
};

const SAMPLE_EVERY_MS = 60_000;
/** How often it is checked which browsers are due. */
const ROUND_MS = 5_000;
const SAMPLE_WITHIN_MS = 1_500;
/** The end of a session waits so long for its last picture; else the one before is its last. */
const LAST_WITHIN_MS = 500;
/** Ends that wait for a picture; the others have the one before. */
const LAST_AT_ONCE = 4;

/** Samples browsers from time to time: their pictures, and the memory that they use. */
export type Sampler = {
  /** Samples once more, before the browser is stopped. Takes half a second at most. */
  last(box: Sampled): Promise<void>;
} & Disposable;

export type SamplerOptions = {
  thumbnails: Thumbnails;
  browsers: Pick<Browsers, 'memoryUsed'>;
  log: Pick<Logger, 'debug'>;
  /** The browsers whose sessions use them now. */
  all: () => Sampled[];
  /** How often each browser is sampled; a minute by default. */
  sampleEveryMs?: number | undefined;
};

export function createSampler(options: SamplerOptions): Sampler {
  const { thumbnails, browsers, log, all, sampleEveryMs = SAMPLE_EVERY_MS } = options;
  const stop = new AbortController();
  let isInRound = false;
  let lastSamples = 0;

  async function pictureOf(box: Sampled, withinMs: number): Promise<Buffer | null> {
    if (box.browser === null || box.isHandedOff) return null;
    const picture = await thumbnails.take(box.browser.cdp, withinMs);
    // It may have been handed off meanwhile.
    return box.isHandedOff ? null : picture;
  }
  async function memoryOf({ browser }: Sampled, withinMs: number): Promise<number> {
    if (browser === null || browsers.memoryUsed === undefined) return 0;
    try {
      return (await within(withinMs, browsers.memoryUsed(browser.workloadId))) ?? 0;
    } catch (error) {
      log.debug(
        { err: error, workloadId: browser.workloadId },
        'the memory of a browser is unknown',
      );
      return 0;
    }
  }
  async function sample(box: Sampled, withinMs: number): Promise<void> {
    const sampling = [pictureOf(box, withinMs), memoryOf(box, withinMs)] as const;
    const [picture, memoryBytes] = await Promise.all(sampling);
    box.picture = picture ?? box.picture;
    box.memoryPeakBytes = Math.max(box.memoryPeakBytes, memoryBytes);
    box.sampledAt = performance.now();
  }
  /** The one that was sampled longest ago, if that is too long. */
  function nextDue(): Sampled | undefined {
    const due = performance.now() - sampleEveryMs;
    const [next] = all()
      .filter((box) => isInUse(box) && box.sampledAt < due)
      .toSorted((one, other) => one.sampledAt - other.sampledAt);
    return next;
  }
  /** One browser after the other: it takes little of a core however many there are. */
  async function round(): Promise<void> {
    if (isInRound) return;
    isInRound = true;
    for (let box = nextDue(); box !== undefined && !stop.signal.aborted; box = nextDue())
      await sample(box, SAMPLE_WITHIN_MS);
    isInRound = false;
  }
  const rounds = setInterval(() => void round(), Math.min(ROUND_MS, sampleEveryMs)).unref();

  return {
    async last(box) {
      if (!isInUse(box) || lastSamples >= LAST_AT_ONCE) return;
      lastSamples += 1;
      await within(LAST_WITHIN_MS, sample(box, LAST_WITHIN_MS), () => undefined);
      lastSamples -= 1;
    },
    [Symbol.dispose]() {
      stop.abort();
      clearInterval(rounds);
    },
  };
}

/** Only a browser whose session has opened a page has something to show. */
function isInUse({ session, browser, notes }: Sampled): boolean {
  return session !== null && browser !== null && notes.address !== null;
}

import type Docker from 'dockerode';
import { createBackOff } from '#src/kernel/async/back-off.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import {
  inspectImage,
  linked,
  listBrowserImages,
  newestOf,
  presentRecipe,
  withVersion,
  type BrowserImage,
} from './browser-image.ts';

/** The image that new browsers run from. It changes when a newer one has been built or pulled. */
export type CurrentImage = {
  now(): BrowserImage;
  onChange(listener: (image: BrowserImage) => void): void;
  /** Asks the engine for a newer image, now. @throws the engine's error */
  look(): Promise<void>;
};

export type CurrentImageOptions = {
  docker: Docker;
  first: BrowserImage;
  /** The operator's image; null: the newest of a recipe. */
  given: string | null;
  /** The present one by default. */
  recipe?: string;
};

export function createCurrentImage(options: CurrentImageOptions): CurrentImage {
  const { docker, first, given, recipe = presentRecipe() } = options;
  const listeners: ((image: BrowserImage) => void)[] = [];
  let current = first;
  return {
    now: () => current,
    onChange: (listener) => void listeners.push(listener),
    async look() {
      const found =
        given === null
          ? newestOf(await listBrowserImages(docker, recipe))
          : await inspectImage(docker, given);
      // A missing image is the next launch's error.
      if (found === null || found.id === current.id) return;
      // No container is run for an image that is known.
      current = await withVersion(docker, linked(found));
      for (const listener of listeners) listener(current);
    },
  };
}

/** How often a newer image is looked for. */
const LOOK_EVERY_MS = 60_000;
/** No rebuild before this: a start has more urgent work. */
const START_MS = 5 * 60_000;
/** Servers whose images were built together rebuild them within this share of the period. */
const SPREAD = 0.1;
/** Pauses after failed rebuilds. */
const RETRY_MS = 60 * 60_000;
const RETRY_MAX_MS = 24 * 60 * 60_000;

/**
 * When the image is to be rebuilt next: a period after its packages were installed and a share of
 * the tenth of it, but not soon after the start. Milliseconds since the epoch. Pure.
 * @param share 0 to 1, another for each process
 */
export function rebuildAt(times: {
  builtAt: number;
  everyMs: number;
  startedAt: number;
  share: number;
}): number {
  const { builtAt, everyMs, startedAt, share } = times;
  return Math.max(builtAt + everyMs, startedAt + START_MS) + share * SPREAD * everyMs;
}

export type FreshOptions = {
  image: CurrentImage;
  /** Builds the image anew. */
  rebuild: (how: { print: (line: string) => void; signal: AbortSignal }) => Promise<unknown>;
  /** Milliseconds from one build to the next; null: never. */
  rebuildMs: number | null;
  log: Pick<Logger, 'info' | 'warn'>;
};

/**
 * Picks up newer images each minute, and rebuilds the image when it is due. A failed rebuild is
 * tried again after an hour, then after twice as long, up to a day; browsers go on with the image
 * that there is.
 */
export function keepFresh({ image, rebuild, rebuildMs, log }: FreshOptions): Disposable {
  const stop = new AbortController();
  const startedAt = Date.now();
  const share = Math.random();
  const backOff = createBackOff(RETRY_MS, RETRY_MAX_MS);
  let notBefore = 0;
  let isBusy = false;

  function print(line: string): void {
    log.info({ step: line.trim() }, 'rebuilding the browser image');
  }
  function isDue(): boolean {
    if (rebuildMs === null || Date.now() < notBefore) return false;
    const { builtAt } = image.now();
    return Date.now() >= rebuildAt({ builtAt, everyMs: rebuildMs, startedAt, share });
  }
  async function tryRebuild(): Promise<void> {
    // Not at once again, even if what was built is not the newest image.
    notBefore = Date.now() + RETRY_MS;
    try {
      await rebuild({ print, signal: stop.signal });
      await image.look();
      backOff.reset();
    } catch (error) {
      if (stop.signal.aborted) return;
      const retryMs = backOff.nextMs();
      notBefore = Date.now() + retryMs;
      log.warn({ err: error, retryMs }, 'failed to rebuild the browser image');
    }
  }
  async function lookAndRebuild(): Promise<void> {
    if (isBusy) return;
    isBusy = true;
    try {
      await image.look();
      if (isDue()) await tryRebuild();
    } catch (error) {
      log.warn({ err: error }, 'failed to look for a newer browser image');
    } finally {
      isBusy = false;
    }
  }
  const timer = setInterval(() => void lookAndRebuild(), LOOK_EVERY_MS);
  timer.unref();
  return {
    [Symbol.dispose]() {
      clearInterval(timer);
      stop.abort();
    },
  };
}

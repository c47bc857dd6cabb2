import { within } from '#src/kernel/async/timeout.ts';
import type { SessionIdentity } from '#src/kernel/domain/session/session.ts';
import { thumbnailKey } from '#src/kernel/domain/session/thumbnail.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { takePicture } from '#src/browsers/chromium/screenshot.ts';

/** In pixels. */
const WIDTH = 640;
const QUALITY = 50;
/** A larger picture is none: it is kept in memory for each session. */
const BYTES_MAX = 256 * 1024;
/** A store that has not taken a picture by then goes without it. */
const STORE_WITHIN_MS = 10_000;
/** Pictures that are being stored; a further one is given up. */
const STORING_MAX = 64;
/** A server that stops waits so long for those that are being stored. */
const LAST_WITHIN_MS = 3_000;

/** Last pictures of sessions, in the object store. */
export type Thumbnails = {
  /** Null: the browser shows none in time, or one that is too large. Never rejects. */
  take(address: RunningBrowser['cdp'], withinMs: number): Promise<Buffer | null>;
  /** Begins to store it; a failure is logged. */
  store(session: SessionIdentity, picture: Buffer): void;
} & AsyncDisposable;

export function createThumbnails(options: {
  objects: Pick<ObjectStore, 'put'>;
  log: Pick<Logger, 'debug' | 'warn'>;
  take?: typeof takePicture;
}): Thumbnails {
  const { objects, log, take = takePicture } = options;
  const storing = new Set<Promise<void>>();

  async function put(session: SessionIdentity, picture: Buffer): Promise<void> {
    const signal = AbortSignal.timeout(STORE_WITHIN_MS);
    try {
      await objects.put(thumbnailKey(session), bodyOf(picture), {
        signal,
        bytes: picture.length,
      });
    } catch (error) {
      log.warn(
        { err: error, sessionId: session.id },
        'failed to store the last picture of a session',
      );
    }
  }
  return {
    async take(address, withinMs) {
      const signal = AbortSignal.timeout(withinMs);
      try {
        const picture = await take(address, { width: WIDTH, quality: QUALITY }, signal);
        return picture.length > BYTES_MAX ? null : picture;
      } catch (error) {
        log.debug({ err: error }, 'a browser has made no last picture');
        return null;
      }
    },
    store(session, picture) {
      if (storing.size >= STORING_MAX) {
        log.warn({ sessionId: session.id }, 'the last picture of a session was given up');
        return;
      }
      const stored = put(session, picture).finally(() => storing.delete(stored));
      storing.add(stored);
    },
    async [Symbol.asyncDispose]() {
      await within(LAST_WITHIN_MS, Promise.all(storing), () => undefined);
    },
  };
}

async function* bodyOf(picture: Buffer): AsyncIterable<Uint8Array> {
  yield picture;
}

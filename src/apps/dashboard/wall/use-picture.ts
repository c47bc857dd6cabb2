import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { RequestFailed, send, sentenceOf } from '../api/api-client.ts';
import { createTurns } from './in-turn.ts';

/** One width for all walls: the pictures of a session are made once a second for all of them. */
const WIDTH = 320;
/** The stream of events has a connection, too, and a browser has six of a host. */
const AT_ONCE = 4;
const WAIT_MIN_MS = 2_000;
const WAIT_MAX_MS = 30_000;

const inTurn = createTurns(AT_ONCE);
/** After a 429 no tile asks before this time. By performance.now(). */
let quietUntil = 0;

/** `at`: when the service last said that the browser shows this. */
export type Picture = { url: string; at: number };
type Seen = { picture: Picture | null; failure: string | null };

/** What a session's browser shows, asked again and again while `isLookedAt`. */
export function usePicture(id: string, isLookedAt: boolean, everyMs: number): Seen {
  const [seen, setSeen] = useState<Seen>({ picture: null, failure: null });
  const last = useRef({ begunAt: -Infinity, etag: '', url: '' });
  useEffect(() => () => URL.revokeObjectURL(last.current.url), []);
  useEffect(() => {
    if (!isLookedAt) return;
    const stop = new AbortController();
    void watch(stop.signal);
    return () => stop.abort();

    async function watch(signal: AbortSignal) {
      let waitMs = WAIT_MIN_MS;
      while (!signal.aborted) {
        const since = performance.now() - last.current.begunAt;
        await pause(Math.max(everyMs - since, quietUntil - performance.now()), signal);
        try {
          await inTurn(() => readPicture(signal));
          waitMs = WAIT_MIN_MS;
        } catch (error) {
          if (signal.aborted) return;
          setSeen(({ picture }) => ({ picture, failure: sentenceOf(error) }));
          const isFinal = error instanceof RequestFailed && [401, 403].includes(error.status);
          if (isFinal) return;
          const askedMs = error instanceof RequestFailed ? error.retryAfterMs : null;
          if (error instanceof RequestFailed && error.status === 429)
            quietUntil = performance.now() + (askedMs ?? waitMs);
          await pause(Math.max(askedMs ?? 0, waitMs) * (1 + Math.random() / 4), signal);
          waitMs = Math.min(2 * waitMs, WAIT_MAX_MS);
        }
      }
    }

    async function readPicture(signal: AbortSignal) {
      if (signal.aborted) return;
      const now = last.current;
      now.begunAt = performance.now();
      // The browser's cache sends the ETag, and takes an unchanged picture from what it has.
      const path = `/api/sessions/${encodeURIComponent(id)}/screenshot?max_width=${WIDTH}`;
      const answer = await send(path, { signal });
      const bytes = await answer.blob();
      if (signal.aborted) return;
      const etag = answer.headers.get('etag') ?? '';
      if (etag === '' || etag !== now.etag) {
        URL.revokeObjectURL(now.url);
        now.url = URL.createObjectURL(bytes);
        now.etag = etag;
      }
      setSeen({ picture: { url: now.url, at: Date.now() }, failure: null });
    }
  }, [id, isLookedAt, everyMs]);
  return seen;
}

function pause(ms: number, stopped: AbortSignal): Promise<void> {
  if (ms <= 0 || stopped.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    stopped.addEventListener('abort', end, { once: true });
  });
}

/** Whether the element is in view in a tab that is in front. */
export function useIsLookedAt(element: RefObject<Element | null>): boolean {
  const [isInView, setInView] = useState(false);
  const [isInFront, setInFront] = useState(!document.hidden);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      setInView(entries.at(-1)?.isIntersecting === true);
    });
    if (element.current !== null) observer.observe(element.current);
    const change = () => setInFront(!document.hidden);
    document.addEventListener('visibilitychange', change);
    return () => {
      observer.disconnect();
      document.removeEventListener('visibilitychange', change);
    };
  }, []);
  return isInView && isInFront;
}

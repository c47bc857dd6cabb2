import { TOO_LARGE } from '#src/browsers/chromium/cdp.ts';
import type { ObservedTarget } from '#src/browsers/observer/part.ts';
import type { Notes } from './notes.ts';
import { readers } from './read-event.ts';

/** What is enabled in each page. `Network` is left out: it tells of each request and its parts. */
const DOMAINS = ['Runtime', 'Log', 'Page', 'Inspector'];
/** Those whose events a page can cause without end. */
const UNBOUNDED_DOMAINS = ['Runtime', 'Log'];
/** More messages in a second, and a page is not listened to for a while. */
const MESSAGES_MAX = 200;
const WINDOW_MS = 1_000;
const PAUSE_MS = 5_000;
/** The browser keeps objects that were logged for its listener; it lets go of them this late. */
const RELEASE_MS = 1_000;

export type FollowedPage = {
  /** Listens no more: the page's session wants no notes. */
  stop(): Promise<void>;
};

/**
 * Notes what a page tells.
 * @returns once the page is listened to
 * @throws Error if the page has closed meanwhile or is hung
 */
export async function followPage(
  target: ObservedTarget,
  notes: () => Notes,
  now: () => number = Date.now,
): Promise<FollowedPage> {
  const send = (method: string, params?: object) =>
    target.send(method, params).catch(() => undefined);
  let isStopped = false;
  let isPaused = false;
  /** Enabling a domain repeats messages from before: milliseconds since the epoch. */
  let since = 0;
  let window = { from: now(), messages: 0 };
  let isReleasing = false;

  function take(name: string, params: Record<string, unknown>): void {
    if (isStopped) return;
    if (UNBOUNDED_DOMAINS.some((domain) => name.startsWith(`${domain}.`))) {
      if (isPaused || timeOf(params) < since || isTooMuch()) return;
      releaseSoon();
    }
    readers[name]?.(params, notes(), { targetId: target.targetId, now: now() });
  }
  function isTooMuch(): boolean {
    const at = now();
    if (at - window.from > WINDOW_MS) window = { from: at, messages: 0 };
    window.messages += 1;
    if (window.messages <= MESSAGES_MAX) return false;
    void pause();
    return true;
  }
  async function pause(): Promise<void> {
    if (isPaused || isStopped) return;
    isPaused = true;
    notes().dropped += 1;
    await Promise.all(UNBOUNDED_DOMAINS.map((domain) => send(`${domain}.disable`)));
    setTimeout(() => void resume(), PAUSE_MS).unref();
  }
  async function resume(): Promise<void> {
    if (isStopped || target.closed.aborted) return;
    since = now();
    window = { from: since, messages: 0 };
    isPaused = false;
    await Promise.all(UNBOUNDED_DOMAINS.map((domain) => send(`${domain}.enable`)));
  }
  function releaseSoon(): void {
    if (isReleasing) return;
    isReleasing = true;
    const release = () => {
      isReleasing = false;
      if (!target.closed.aborted) void send('Runtime.releaseObjectGroup', CONSOLE);
    };
    setTimeout(release, RELEASE_MS).unref();
  }

  for (const name of Object.keys(readers)) target.on(name, (params) => take(name, params));
  target.on(TOO_LARGE, () => void pause());
  await Promise.all(DOMAINS.map((domain) => target.send(`${domain}.enable`)));
  return {
    async stop() {
      isStopped = true;
      await Promise.all(DOMAINS.map((domain) => send(`${domain}.disable`)));
    },
  };
}

const CONSOLE = { objectGroup: 'console' };

/** The event's own time in milliseconds since the epoch; Infinity: it has none. */
function timeOf({ timestamp, entry }: Record<string, unknown>): number {
  const at = timestamp ?? (entry as { timestamp?: unknown } | undefined)?.timestamp;
  return typeof at === 'number' ? at : Infinity;
}

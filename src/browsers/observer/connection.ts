import { within } from '#src/kernel/async/timeout.ts';
import type { Cdp } from '#src/browsers/link/cdp.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { BrowserSpec } from '../browsers.ts';
import { createSource, listen } from './listeners.ts';
import type { ObservedBrowserConnection, ObserverPart } from './part.ts';
import { followTargets, type Attempt } from './targets.ts';

/** A command without an answer by then has failed: the browser or the page is hung. */
const ANSWER_WITHIN_MS = 2_000;
/** Commands without an answer; a further one fails at once. */
const UNANSWERED_MAX = 512;

type Options = {
  workloadId: string;
  launchedWith: BrowserSpec | null;
  parts: readonly ObserverPart[];
  log: Pick<Logger, 'warn'>;
};

/**
 * Puts the parts in place on an open connection, and has them follow what it tells.
 * @returns `ready` resolves once they are in place or have failed; a failure is logged
 */
export function observe(
  cdp: Cdp,
  { workloadId, launchedWith, parts, log }: Options,
): { connection: ObservedBrowserConnection; ready: Promise<void> } {
  const browser = createSource();
  const { signal } = browser.end;
  const connection: ObservedBrowserConnection = {
    workloadId,
    launchedWith,
    send: boundedSend(cdp),
    on: (event, listener) => listen(browser, event, listener),
    closed: signal,
  };
  const attempt: Attempt = async (part, work, closed) => {
    try {
      await work();
    } catch (error) {
      // Nothing is wrong with a page that has closed meanwhile.
      if (!closed.aborted)
        log.warn({ err: error, workloadId, part }, 'failed to put a part in place in a browser');
    }
  };
  const targets = followTargets({ connection, parts, attempt });
  cdp.onEvent((event) => {
    targets.take(event);
    const source = event.sessionId === undefined ? browser : targets.source(event.sessionId);
    for (const listener of source?.listeners.get(event.method) ?? []) {
      try {
        listener(event.params);
      } catch (error) {
        log.warn({ err: error, workloadId, event: event.method }, 'failed to take an event');
      }
    }
  });
  cdp.closed.catch(() => {
    browser.end.abort();
    targets.end();
  });

  async function putInPlace(): Promise<void> {
    const begun = parts.map((part) =>
      attempt(part.name, () => part.attached?.(connection), signal),
    );
    await Promise.all([...begun, targets.begin()]);
  }
  return { connection, ready: putInPlace() };
}

function boundedSend(cdp: Cdp): ObservedBrowserConnection['send'] {
  let unanswered = 0;
  return async <Result>(method: string, params?: object, sessionId?: string) => {
    if (unanswered >= UNANSWERED_MAX) throw new Error('the browser has left commands unanswered');
    unanswered += 1;
    const answer = cdp.send<Result>(method, params, sessionId).finally(() => (unanswered -= 1));
    return within(ANSWER_WITHIN_MS, answer);
  };
}

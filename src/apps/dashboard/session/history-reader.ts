import { listen, sessionOf } from '../live/organization-events.ts';
import { read, sentenceOf } from '../api/api-client.ts';
import type { HistoryEvent } from './history.ts';

/** Events in one answer; a page that only looks for news needs few. */
const PAGE = 500;
const NEWS = 50;
/** Events that are read without being asked. */
const EVENTS_MAX = 2000;
const RETRY_MS = 3000;
/** Events arrive in groups: they are read together. */
const TOGETHER_MS = 200;

export type History = {
  events: readonly HistoryEvent[];
  /** Whether all events until now are read. */
  isWhole: boolean;
  failure: string | null;
};

export const NOTHING_READ: History = { events: [], isWhole: false, failure: null };

export type HistoryReader = { readMore(): void; stop(): void };

/** Reads a session's history, and reads on whenever something happens to it. */
export function followHistory(id: string, show: (history: History) => void): HistoryReader {
  const stopped = new AbortController();
  let history = NOTHING_READ;
  let most = EVENTS_MAX;
  let isReading = false;
  let isDue = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function readOn(): Promise<void> {
    for (;;) {
      const after = history.events.at(-1)?.sequence ?? 0;
      const limit = history.isWhole ? NEWS : PAGE;
      const path = `/api/sessions/${encodeURIComponent(id)}/history?limit=${limit}&after=${after}`;
      const page = await read<{ events: HistoryEvent[]; next: number | null }>(
        path,
        stopped.signal,
      );
      const events = [...history.events, ...page.events];
      history = { events, isWhole: page.next === null, failure: null };
      show(history);
      if (page.next === null || events.length >= most) return;
    }
  }

  async function run(): Promise<void> {
    isDue = true;
    if (isReading) return;
    isReading = true;
    try {
      while (isDue) {
        isDue = false;
        await readOn();
      }
    } catch (error) {
      if (stopped.signal.aborted) return;
      history = { ...history, failure: sentenceOf(error) };
      show(history);
      soon(RETRY_MS);
    } finally {
      isReading = false;
    }
  }

  function soon(ms: number): void {
    clearTimeout(timer);
    timer = setTimeout(() => void run(), ms);
  }

  const stopListening = listen({
    onOpen: () => soon(0),
    onEvent: (event) => {
      if (sessionOf(event) === id && history.events.length < most) soon(TOGETHER_MS);
    },
  });
  void run();
  return {
    readMore() {
      most += EVENTS_MAX;
      void run();
    },
    stop() {
      clearTimeout(timer);
      stopped.abort();
      stopListening();
    },
  };
}

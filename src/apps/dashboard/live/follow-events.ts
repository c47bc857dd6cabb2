import type { CloudEvent } from '#events/cloud-event.ts';
import { RequestFailed, send, sentenceOf } from '../api/api-client.ts';
import { createMessageParser } from './event-stream.ts';

/** The service sends a heartbeat far more often; a stream that is silent for longer is broken. */
const SILENCE_MS = 60_000;
const WAIT_MIN_MS = 500;
const WAIT_MAX_MS = 15_000;

export type Listener = {
  /**
   * A stream is open. `isGap`: none before it told a position to go on from, so what happened
   * until now has to be read.
   */
  onOpen(isGap: boolean): void;
  onEvent(event: CloudEvent): void;
  /** The stream ended; it is opened again by itself. */
  onBroken(reason: string): void;
};

/**
 * Follows the organization's events until it is stopped. Each new stream goes on after the last
 * event received. fetch, because an EventSource cannot send a credential.
 */
export function followEvents(listener: Listener): () => void {
  const stop = new AbortController();
  void followUntil(stop.signal, listener);
  return () => stop.abort();
}

async function followUntil(stopped: AbortSignal, listener: Listener): Promise<void> {
  let last: string | null = null;
  let waitMs = WAIT_MIN_MS;
  while (!stopped.aborted) {
    const silence = new AbortController();
    try {
      const signal = AbortSignal.any([stopped, silence.signal]);
      const headers = last === null ? {} : { 'last-event-id': last };
      const answer = await send('/api/events', { headers, signal });
      waitMs = WAIT_MIN_MS;
      listener.onOpen(last === null);
      last = answer.headers.get('last-event-id') ?? last;
      let reason: string | null = null;
      for await (const { id, type, data } of messagesOf(answer, silence)) {
        if (type === 'end') reason = data;
        else {
          // The position first: an event that a page cannot show must not come again for ever.
          last = id;
          listener.onEvent(JSON.parse(data) as CloudEvent);
        }
      }
      if (!stopped.aborted) listener.onBroken(endOf(reason));
    } catch (error) {
      if (stopped.aborted) return;
      listener.onBroken(reasonOf(error));
      if (error instanceof RequestFailed && error.status === 401) return;
      if (isRefusal(error)) last = null;
    }
    await pause(waitMs * (0.75 + Math.random() / 2), stopped);
    waitMs = Math.min(2 * waitMs, WAIT_MAX_MS);
  }
}

/** @param data of the message `end`; null: the stream ended without */
function endOf(data: string | null): string {
  const { message } = JSON.parse(data ?? '{}') as { message?: string };
  return message ?? 'The service ended the stream of events.';
}

/** Whether the service does not know the position: the events are another store's, or archived. */
function isRefusal(error: unknown): boolean {
  return error instanceof RequestFailed && !error.isTransient && error.status !== 403;
}

function reasonOf(error: unknown): string {
  return error instanceof RequestFailed ? sentenceOf(error) : 'The connection was lost.';
}

async function* messagesOf(answer: Response, silence: AbortController) {
  const parse = createMessageParser();
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  for (;;) {
    const late = setTimeout(() => silence.abort(), SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(late));
    if (done) return;
    yield* parse(value);
  }
}

function pause(ms: number, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
    stopped.addEventListener('abort', () => resolve(), { once: true });
  });
}

import type { CloudEvent } from '#events/cloud-event.ts';
import type { Aggregates } from '#events/events.ts';
import type { Internal, Public } from '#events/public-event.ts';
import { NoAnswer, ServiceError } from './failures.ts';
import { pause, pauseAfter, type Request, type Requester } from './requester.ts';
import { readMessages, type SseMessage } from './sse.ts';

/** An event of an organization: a CloudEvent, discriminated by `type`. */
export type ServiceEvent =
  | EventOf<'session'>
  | EventOf<'ledger'>
  | EventOf<'organization'>
  | EventOf<'profile'>;

/** `state` is null if another version of the service wrote the event. */
type EventOf<Kind extends keyof Aggregates> = Aggregates[Kind]['event'] extends infer Event
  ? Event extends { type: Internal }
    ? never
    : Event extends { type: string; data: unknown }
      ? Omit<CloudEvent, 'type' | 'data' | 'state'> & {
          type: Event['type'];
          data: Public<Event['data']>;
          state: Public<Aggregates[Kind]['state']> | null;
        }
      : never
  : never;

export type EventsOptions = {
  /** Sequence of the first event, or a time to begin at; default: only new events. */
  from?: number | Date;
  /** Event types, as `session.activated`; default: all. */
  types?: readonly ServiceEvent['type'][];
  /** Events of sessions with all of these labels. */
  labels?: Record<string, string>;
  signal?: AbortSignal;
  /** Give up after this many connections in a row without an event; default 10. */
  triesMax?: number;
};

const TRIES_MAX = 10;
/** The service sends a heartbeat every 15 s; after this silence the connection counts as dead. */
const SILENCE_MS = 45_000;
/** Upper bound for the retry delay that the service sends. */
const RETRY_MAX_MS = 30_000;
const FINAL = ['session.stopped', 'session.failed'];

/**
 * Events of a stream over any number of connections: each begins after the last event of the one
 * before. The stream of a session ends with its last event.
 */
export async function* followEvents(
  requester: Requester,
  { path, isOneSession = false }: { path: string; isOneSession?: boolean },
  options: EventsOptions,
): AsyncGenerator<ServiceEvent, void, void> {
  const { signal, triesMax = TRIES_MAX } = options;
  const position: Position = { lastId: null, retryMs: 0, isOver: false };
  for (let failures = 0; !position.isOver;) {
    let failure: unknown = new NoAnswer(`${path}: the stream ended`);
    try {
      for await (const message of listen(requester, requestOf(path, options, position))) {
        const event = take(message, position);
        if (event !== null || isHeartbeat(message)) failures = 0;
        if (event === null) continue;
        if (isOneSession && FINAL.includes(event.type)) position.isOver = true;
        yield event;
      }
    } catch (error) {
      signal?.throwIfAborted();
      failure = error;
    }
    if (position.isOver) return;
    failures += 1;
    const afterMs = pauseAfter(failure, failures - 1);
    if (afterMs === null || failures >= triesMax) throw failure;
    await pause(Math.max(afterMs, position.retryMs), signal);
  }
}

/** Position of a reader in the stream. */
type Position = { lastId: string | null; retryMs: number; isOver: boolean };

function requestOf(path: string, options: EventsOptions, { lastId }: Position): Request {
  const { from, types = [], labels = {}, signal } = options;
  const begin = from instanceof Date ? from.toISOString() : from;
  return {
    method: 'GET',
    path,
    query: [
      ...(begin === undefined ? [] : [['from', String(begin)] as const]),
      ...types.map((type) => ['type', type] as const),
      ...Object.entries(labels).map(([name, value]) => ['label', `${name}=${value}`] as const),
    ],
    headers: {
      accept: 'text/event-stream',
      ...(lastId === null ? {} : { 'last-event-id': lastId }),
    },
    ...(signal === undefined ? {} : { signal }),
  };
}

/**
 * The messages of one connection, which is closed after 45 s of silence; the first has the position
 * at which it begins. A response without a body means that the stream is complete (null).
 */
async function* listen(
  requester: Requester,
  request: Request,
): AsyncGenerator<SseMessage | null, void, void> {
  const cut = new AbortController();
  const signal = AbortSignal.any([cut.signal, ...(request.signal ? [request.signal] : [])]);
  const silent = () => cut.abort(new Error('nothing was received for 45 s'));
  let timer = setTimeout(silent, SILENCE_MS);
  try {
    const { body, status, headers } = await requester.open({ ...request, signal });
    if (status === 204 || body === null) return yield null;
    const id = headers.get('last-event-id');
    if (id !== null) yield { id, event: null, data: null, retry: null };
    for await (const message of readMessages(body)) {
      clearTimeout(timer);
      yield message;
      timer = setTimeout(silent, SILENCE_MS);
    }
  } catch (error) {
    if (error instanceof ServiceError || error instanceof NoAnswer) throw error;
    throw new NoAnswer(`${request.path}: ${String(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
    cut.abort();
  }
}

/** The event in a message, or null; advances the position. @throws ServiceError */
function take(message: SseMessage | null, position: Position): ServiceEvent | null {
  if (message === null) {
    position.isOver = true;
    return null;
  }
  const { id, event: type, data, retry } = message;
  if (id !== null) position.lastId = id;
  if (retry !== null) position.retryMs = Math.min(RETRY_MAX_MS, Number.parseInt(retry, 10) || 0);
  if (type === null || data === null) return null;
  if (type === 'end') {
    refuseRevoked(data);
    return null;
  }
  return JSON.parse(data) as ServiceEvent;
}

/** The client reconnects after every other reason for the end of a stream. */
function refuseRevoked(data: string): void {
  const { reason, message } = JSON.parse(data) as { reason: string; message: string };
  if (reason !== 'credential_revoked') return;
  throw new ServiceError({ error: 'UNAUTHORIZED', message, code: 401, context: { reason } });
}

function isHeartbeat(message: SseMessage | null): boolean {
  return message?.event === null && message.id === null && message.retry === null;
}

import { newId } from '#src/kernel/ids.ts';
import type { McpSession, McpSessions } from '#src/kernel/messaging/mcp-sessions.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';

/** A stream to a client, while it is open. */
export type ClientStream = {
  organizationId: string;
  /** Closes it from here. `isProcessEnding`: the client should open it again at another process. */
  end: (isProcessEnding?: boolean) => void;
  /** Whether the credential by which it was opened is still valid. Rejects: not known now. */
  isAllowed: () => Promise<boolean>;
};

/** Streams that one organization may have open in this process. */
export const STREAMS_MAX = 100;
/** Sessions that are noted in the store at once. */
const CONCURRENCY = 20;

/** The clients of the MCP server that this process serves. */
export type McpClients = AsyncDisposable & {
  /**
   * Reserves the one stream of the session, at once; a stream that was open before is closed: its
   * client has lost it, or it would not ask for another. Null: the organization has as many streams
   * open as it may.
   */
  reserve(id: string, stream: ClientStream): Reservation | null;
  /**
   * Notes that the client was heard of, also while its request is being worked on.
   * @param how `isBack`: it was cut off or awaited, and goes on without a stream
   */
  hear<Answer>(id: string, how: { isBack: boolean }, work: () => Promise<Answer>): Promise<Answer>;
};

type Reservation = {
  /** Notes in the store that the stream is open. @throws Unavailable */
  opened(): Promise<McpSession | null>;
  /** Notes that it is cut, unless another one has replaced it. Never throws. */
  cut(): void;
};

/** What this process has of its clients, by the id of their MCP session. */
type State = {
  sessions: McpSessions;
  log: Pick<Logger, 'warn'>;
  everyMs: number;
  streams: Map<string, OpenStream>;
  /** How many requests are being worked on. */
  working: Map<string, number>;
  /** When the last sign of life was stored, by performance.now(). */
  notedAt: Map<string, number>;
  /** Writes of cut streams that are under way. */
  cuts: Set<Promise<void>>;
  /** The process ends: it cuts its streams itself. */
  isClosing: boolean;
};
type OpenStream = ClientStream & {
  streamId: string;
  /** Whether the store has it: before that, another one's id stands there. */
  isStored: boolean;
};

/**
 * Notes in the store which clients are there: at once when one sends something, and every quarter
 * of the grace for open streams and requests that are being worked on. Disposing closes all
 * streams; their clients are not noted as cut off but as awaited: they may go on at another
 * process.
 */
export function followClients(
  { sessions, graceMs }: { sessions: McpSessions; graceMs: number },
  log: Pick<Logger, 'warn'>,
): McpClients {
  const everyMs = graceMs / 4;
  const state: State = {
    sessions,
    log,
    everyMs,
    streams: new Map(),
    working: new Map(),
    notedAt: new Map(),
    cuts: new Set(),
    isClosing: false,
  };
  let beating: Promise<void> | null = null;
  const timer = setInterval(() => {
    // A round that takes longer than the interval is not joined by a second one.
    beating ??= beat(state).finally(() => (beating = null));
  }, everyMs);
  timer.unref();
  return {
    reserve: (id, stream) => reserve(state, id, stream),

    async hear(id, { isBack }, work) {
      const { working, notedAt } = state;
      working.set(id, (working.get(id) ?? 0) + 1);
      try {
        const isDue = performance.now() - (notedAt.get(id) ?? -Infinity) >= everyMs;
        if (isBack || isDue) await note(state, id, isBack);
        return await work();
      } finally {
        const left = (working.get(id) ?? 1) - 1;
        if (left === 0) working.delete(id);
        else working.set(id, left);
      }
    },

    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      state.isClosing = true;
      for (const stream of state.streams.values()) stream.end(true);
      await beating;
      await Promise.all(state.cuts);
    },
  };
}

/**
 * Writes a sign of life, and closes a stream that another one has replaced.
 * @param isBack the client goes on without the stream that was cut or closed @throws Unavailable
 */
async function note(
  { sessions, streams, notedAt }: State,
  id: string,
  isBack = false,
): Promise<void> {
  notedAt.set(id, performance.now());
  const stream = streams.get(id);
  const own = stream?.isStored === true ? stream.streamId : null;
  const stored = await sessions.change(id, (session) => {
    const isReplaced = own !== null && session.streamId !== own && session.streamId !== null;
    if (session.ended !== null || isReplaced) return null;
    const isAway = session.stream === 'cut' || session.isAwaited === true;
    return isBack && isAway ? { ...session, stream: 'none', isAwaited: false } : session;
  });
  // Another process has the stream now, or the session has ended.
  if (stored === null && own !== null) stream?.end();
}

async function beat(state: State): Promise<void> {
  const { streams, working, notedAt, everyMs } = state;
  const ids = [...new Set([...streams.keys(), ...working.keys()])];
  for (let from = 0; from < ids.length && !state.isClosing; from += CONCURRENCY)
    await Promise.all(ids.slice(from, from + CONCURRENCY).map((id) => beatOf(state, id)));
  const old = performance.now() - everyMs;
  for (const [id, at] of notedAt) if (at < old) notedAt.delete(id);
}

/** Never throws. */
async function beatOf(state: State, id: string): Promise<void> {
  try {
    const stream = state.streams.get(id);
    // Where the credential cannot be checked now, the client is still there.
    if (stream !== undefined && !(await stream.isAllowed().catch(() => true))) stream.end();
    else await note(state, id);
  } catch (error) {
    const message = 'sign of life of an MCP client not stored';
    state.log.warn({ err: error, mcpSessionId: id }, message);
  }
}

function reserve(state: State, id: string, stream: ClientStream): Reservation | null {
  const { sessions, streams, cuts } = state;
  const before = streams.get(id);
  const others = [...streams.values()].filter(
    (one) => one !== before && one.organizationId === stream.organizationId,
  );
  if (others.length >= STREAMS_MAX) return null;
  const streamId = newId('str');
  const mine: OpenStream = { ...stream, streamId, isStored: false };
  streams.set(id, mine);
  before?.end();
  return {
    async opened() {
      const stored = await sessions.change(id, (session) =>
        session.ended === null && streams.get(id) === mine
          ? { ...session, stream: 'open', streamId, isAwaited: false }
          : null,
      );
      mine.isStored = stored !== null;
      return stored;
    },
    cut() {
      if (streams.get(id) === mine) streams.delete(id);
      const storing = storeCut(state, id, streamId).finally(() => cuts.delete(storing));
      cuts.add(storing);
    },
  };
}

/** Never throws: a stream that is no longer renewed is found out by the timekeeper as well. */
async function storeCut(state: State, id: string, streamId: string): Promise<void> {
  const { sessions, log, isClosing } = state;
  const stream = isClosing ? 'none' : 'cut';
  try {
    await sessions.change(id, (session) =>
      session.streamId === streamId
        ? { ...session, stream, streamId: null, isAwaited: isClosing }
        : null,
    );
  } catch (error) {
    log.warn({ err: error, mcpSessionId: id }, 'cut stream of an MCP client not stored');
  }
}

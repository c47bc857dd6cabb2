import { readMessages } from '../sse.ts';
import {
  answersOf,
  createMcpHttp,
  pause,
  Refused,
  SESSION_HEADER,
  type Link,
  type McpHttp,
  type Message,
} from './mcp-http.ts';

export type BridgeOptions = {
  /** Address of the service, which may have a path: `https://host/browsers`. */
  url: string;
  apiKey: string;
  /** Has the messages for the client. */
  send: (message: object) => void;
  /** Has lines for people. */
  log: (line: string) => void;
  /** How long the service may be away before a message fails; default 60 s. */
  patienceMs?: number;
};

export type Bridge = {
  /** Passes a message on and its answer back. Never throws: a failure is an answer, too. */
  pass(message: Message): Promise<void>;
  /** Ends the MCP session, within 5 s. Never throws. */
  end(): Promise<void>;
};

const PATIENCE_MS = 60_000;
/** How often a message begins a session again, whose next one is gone as well. */
const BEGINNINGS_MAX = 3;
const INTERNAL = -32_000;

type State = Pick<BridgeOptions, 'send' | 'log'> & {
  http: McpHttp;
  patienceMs: number;
  /** Aborts once the client has left. */
  left: AbortController;
  /** The client's own first message, by which a session is begun again. */
  initialize: Message | null;
  link: Link | null;
  /** Ends the stream of the link. */
  streaming: AbortController | null;
  /** The beginning that is under way: one for all messages that wait. */
  beginning: Promise<unknown> | null;
};

/**
 * Passes messages between a client on stdio and the service's /mcp. An MCP session that the service
 * has ended is begun again, unseen by the client: its browser sessions are gone, and the tools say
 * so.
 */
export function createBridge(options: BridgeOptions): Bridge {
  const { url, apiKey, send, log, patienceMs = PATIENCE_MS } = options;
  const left = new AbortController();
  const http = createMcpHttp({ url, apiKey, patienceMs, signal: left.signal });
  const state: State = {
    send,
    log,
    http,
    patienceMs,
    left,
    initialize: null,
    link: null,
    streaming: null,
    beginning: null,
  };
  return {
    async pass(message) {
      try {
        for (const answer of await exchange(state, message)) send(answer);
      } catch (error) {
        log(`${message.method ?? 'an answer'}: ${reasonOf(error)}`);
        if (message.id === undefined || message.method === undefined) return;
        const data = error instanceof Refused ? { data: error.body } : {};
        const problem = { code: INTERNAL, message: reasonOf(error), ...data };
        send({ jsonrpc: '2.0', id: message.id, error: problem });
      }
    },

    async end() {
      const { link } = state;
      state.link = null;
      left.abort(new Error('the client has left'));
      if (link === null) return;
      try {
        await http.end(link);
      } catch (error) {
        log(`the MCP session was not ended: ${reasonOf(error)}`);
      }
    },
  };
}

async function exchange(state: State, message: Message): Promise<object[]> {
  if (message.method === 'initialize') {
    state.initialize = message;
    const first = begin(state, message);
    waitFor(state, first);
    return first;
  }
  for (let beginnings = 0; ; beginnings += 1) {
    // A beginning that failed is tried again by the message itself.
    await state.beginning?.catch(() => undefined);
    if (state.link === null && state.initialize !== null) await beginAgain(state, null);
    const { link } = state;
    try {
      return await answersOf(await state.http.post(message, link));
    } catch (error) {
      const isGone = error instanceof Refused && error.status === 404 && link !== null;
      if (!isGone || beginnings >= BEGINNINGS_MAX) throw error;
      await beginAgain(state, link);
    }
  }
}

/** Lets the other messages wait for a beginning. */
function waitFor(state: State, begun: Promise<unknown>): void {
  const beginning = begun.finally(() => (state.beginning = null));
  // It fails for the message that began it; the others look at the session.
  beginning.catch(() => undefined);
  state.beginning = beginning;
}

/** @returns the answers to `initialize`; by then the session is there, with its stream */
async function begin(state: State, message: Message): Promise<object[]> {
  const until = performance.now() + state.patienceMs;
  for (let tries = 0; ; tries += 1) {
    const response = await state.http.post(message, null);
    const id = response.headers.get(SESSION_HEADER);
    const answers = await answersOf(response);
    const result = answers.find((one) => 'result' in one) as Initialized | undefined;
    // The protocol's own refusal: there is no session.
    if (result === undefined && answers.length > 0) return answers;
    if (id !== null && result !== undefined) {
      const link = { id, protocol: result.result.protocolVersion ?? null };
      state.link = link;
      // A link that this one replaces has its stream no longer: the service would wait for it.
      state.streaming?.abort(new Error('the client has another MCP session'));
      state.streaming = new AbortController();
      const { signal } = state.streaming;
      void keepStream(state, link, AbortSignal.any([signal, state.left.signal]));
      return answers;
    }
    if (performance.now() >= until) throw new Error('the service began no MCP session');
    await pause(tries, state.left.signal);
  }
}

type Initialized = { result: { protocolVersion?: string } };

/** Begins the session again, once for all messages whose session is gone. */
async function beginAgain(state: State, gone: Link | null): Promise<void> {
  const { initialize, http, log } = state;
  if (state.beginning === null && state.link === gone && initialize !== null) {
    log('the MCP session is gone; beginning a new one');
    const again = async () => {
      await begin(state, initialize);
      await http.post({ jsonrpc: '2.0', method: 'notifications/initialized' }, state.link);
    };
    waitFor(state, again());
  }
  await state.beginning;
}

/** Holds the session's stream open, by which the service sees that the client is there. */
async function keepStream(state: State, link: Link, signal: AbortSignal): Promise<void> {
  const { http, send, log } = state;
  let tries = 0;
  while (isCurrent(state, link)) {
    try {
      const { body } = await http.stream(link, signal);
      if (body !== null)
        for await (const { data } of readMessages(body)) {
          tries = 0;
          if (data !== null) send(JSON.parse(data) as object);
        }
    } catch (error) {
      if (!isCurrent(state, link)) return;
      log(`the stream was cut: ${reasonOf(error)}`);
      const isGone = error instanceof Refused && error.status === 404;
      if (isGone) await beginAgain(state, link).catch(() => undefined);
    }
    await pause(tries, signal).catch(() => undefined);
    tries += 1;
  }
}

function isCurrent({ link, left }: State, one: Link): boolean {
  return link === one && !left.signal.aborted;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

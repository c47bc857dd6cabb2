import { setTimeout as delay } from 'node:timers/promises';
import { readMessages } from '../sse.ts';

/** A message of JSON-RPC, as far as it matters here. */
export type Message = { jsonrpc?: string; id?: unknown; method?: string; [field: string]: unknown };

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

const SESSION_HEADER = 'mcp-session-id';
const PATIENCE_MS = 60_000;
const PAUSE_MS = 250;
const PAUSE_MAX_MS = 8_000;
const END_MS = 5_000;
/** How often a message begins a session again, whose next one is gone as well. */
const BEGINNINGS_MAX = 3;
/** The service is away or has no time, and has not looked at the message. */
const LATER = [429, 502, 503, 504];
/** Failures of a connection on which nothing was sent. */
const NOT_SENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];
const INTERNAL = -32_000;

/** What the service answered that is no answer to the message. */
class Refused extends Error {
  readonly status: number;
  readonly body: unknown;
  constructor(status: number, body: unknown) {
    const said = (body as { message?: unknown } | null)?.message;
    super(typeof said === 'string' ? said : `the service answered ${status}`);
    this.status = status;
    this.body = body;
  }
}

/**
 * Passes messages between a client on stdio and the service's /mcp. An MCP session that the service
 * has ended is begun again, unseen by the client: its browser sessions are gone, and the tools say
 * so.
 */
export function createBridge(options: BridgeOptions): Bridge {
  const { apiKey, send, log, patienceMs = PATIENCE_MS } = options;
  const address = `${options.url.replace(/\/+$/, '')}/mcp`;
  const ended = new AbortController();
  let sessionId: string | null = null;
  let initialize: Message | null = null;
  let protocol: string | null = null;
  /** The first beginning, or the one that is under way: one for all messages that wait. */
  let beginning: Promise<unknown> | null = null;

  function headers(accept: string, session: string | null): Record<string, string> {
    return {
      authorization: `Bearer ${apiKey}`,
      accept,
      ...(session === null ? {} : { [SESSION_HEADER]: session }),
      ...(session === null || protocol === null ? {} : { 'mcp-protocol-version': protocol }),
    };
  }

  /** @throws Refused, or the error of the connection */
  async function post(message: Message, session: string | null): Promise<Response> {
    const response = await fetch(address, {
      method: 'POST',
      headers: {
        ...headers('application/json, text/event-stream', session),
        'content-type': 'application/json',
      },
      body: JSON.stringify(message),
      signal: ended.signal,
    });
    if (!response.ok) throw new Refused(response.status, await bodyOf(response));
    return response;
  }

  /** Posts again while the service is away, until the patience is over. */
  async function postPatiently(message: Message, session: string | null): Promise<Response> {
    const until = performance.now() + patienceMs;
    for (let tries = 0; ; tries += 1)
      try {
        return await post(message, session);
      } catch (error) {
        const left = until - performance.now();
        if (!isLater(error) || left <= 0) throw error;
        await delay(Math.min(left, pauseAfter(tries)), undefined, { signal: ended.signal });
      }
  }

  /** @returns the answers to `initialize`; the session is there then, and its stream is kept open */
  async function begin(message: Message): Promise<object[]> {
    const until = performance.now() + patienceMs;
    for (let tries = 0; ; tries += 1) {
      const response = await postPatiently(message, null);
      const id = response.headers.get(SESSION_HEADER);
      const answers = await answersOf(response);
      const result = answers.find((one) => 'result' in one) as Initialized | undefined;
      // The protocol's own refusal: there is no session.
      if (result === undefined && answers.length > 0) return answers;
      if (id !== null && result !== undefined) {
        [sessionId, protocol] = [id, result.result.protocolVersion ?? null];
        void keepStream(id);
        return answers;
      }
      if (performance.now() >= until) throw new Error('the service began no MCP session');
      await delay(pauseAfter(tries), undefined, { signal: ended.signal });
    }
  }

  /** Begins the session again, once for all messages whose session is gone. */
  async function beginAgain(gone: string | null): Promise<void> {
    if (beginning === null && sessionId === gone && initialize !== null) {
      const message = initialize;
      log('the MCP session is gone; beginning a new one');
      beginning = (async () => {
        await begin(message);
        await postPatiently({ jsonrpc: '2.0', method: 'notifications/initialized' }, sessionId);
      })().finally(() => (beginning = null));
    }
    await beginning;
  }

  /** Holds the session's stream open, by which the service sees that the client is there. */
  async function keepStream(id: string): Promise<void> {
    for (let tries = 0; sessionId === id && !ended.signal.aborted; tries += 1) {
      try {
        const asked = { headers: headers('text/event-stream', id), signal: ended.signal };
        const response = await fetch(address, asked);
        if (response.status === 404) return void (await beginAgain(id));
        if (!response.ok || response.body === null) await response.body?.cancel();
        else
          for await (const { data } of readMessages(response.body)) {
            tries = 0;
            if (data !== null) send(JSON.parse(data) as object);
          }
      } catch (error) {
        if (!ended.signal.aborted) log(`the stream was cut: ${reasonOf(error)}`);
      }
      await delay(pauseAfter(tries), undefined, { signal: ended.signal }).catch(() => undefined);
    }
  }

  async function exchange(message: Message): Promise<object[]> {
    if (message.method === 'initialize') {
      initialize = message;
      const first = begin(message);
      beginning = first.finally(() => (beginning = null));
      beginning.catch(() => undefined);
      return first;
    }
    for (let beginnings = 0; ; beginnings += 1) {
      // A beginning that failed is tried again by the message itself.
      await beginning?.catch(() => undefined);
      if (sessionId === null && initialize !== null) await beginAgain(null);
      const own = sessionId;
      try {
        return await answersOf(await postPatiently(message, own));
      } catch (error) {
        const isGone = error instanceof Refused && error.status === 404 && own !== null;
        if (!isGone || beginnings >= BEGINNINGS_MAX) throw error;
        await beginAgain(own);
      }
    }
  }

  return {
    async pass(message) {
      try {
        for (const answer of await exchange(message)) send(answer);
      } catch (error) {
        log(`${message.method ?? 'an answer'}: ${reasonOf(error)}`);
        if (message.id === undefined || message.method === undefined) return;
        const data = error instanceof Refused ? { data: error.body } : {};
        const problem = { code: INTERNAL, message: reasonOf(error), ...data };
        send({ jsonrpc: '2.0', id: message.id, error: problem });
      }
    },

    async end() {
      const asked = headers('application/json', sessionId);
      const isBegun = sessionId !== null;
      sessionId = null;
      ended.abort(new Error('the client has left'));
      const signal = AbortSignal.timeout(END_MS);
      for (let tries = 0; isBegun && !signal.aborted; tries += 1)
        try {
          const { status } = await fetch(address, { method: 'DELETE', headers: asked, signal });
          if (!LATER.includes(status)) return;
          await delay(pauseAfter(tries), undefined, { signal });
        } catch (error) {
          log(`the MCP session was not ended: ${reasonOf(error)}`);
          await delay(pauseAfter(tries), undefined, { signal }).catch(() => undefined);
        }
    },
  };
}

type Initialized = { result: { protocolVersion?: string } };

/** The messages of an answer, which is JSON, a stream of events, or empty. */
async function answersOf(response: Response): Promise<object[]> {
  const type = response.headers.get('content-type') ?? '';
  if (type.includes('text/event-stream') && response.body !== null) {
    const answers: object[] = [];
    for await (const { data } of readMessages(response.body))
      if (data !== null) answers.push(JSON.parse(data) as object);
    return answers;
  }
  const text = await response.text();
  return text === '' ? [] : [JSON.parse(text) as object];
}

async function bodyOf(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text.slice(0, 1_000);
  }
}

function isLater(error: unknown): boolean {
  if (error instanceof Refused) return LATER.includes(error.status);
  const { code = '' } = ((error as Error).cause ?? {}) as { code?: string };
  return NOT_SENT.includes(code);
}

/** With jitter: clients that failed together do not come back together. */
function pauseAfter(tries: number): number {
  return Math.min(PAUSE_MAX_MS, PAUSE_MS * 2 ** tries) * (0.5 + Math.random() / 2);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

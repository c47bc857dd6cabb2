import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';
import {
  isRecord,
  mergeCapabilities,
  mismatchOf,
  type Capabilities,
} from '#src/kernel/http/webdriver-capabilities.ts';
import { parseCommand, refuse, type Command, type Refusal } from './bidi-commands.ts';

/**
 * What the server of WebDriver BiDi does around the mapper, which has no sessions: its session is
 * begun by `session.new`, or belongs to one of WebDriver that is there (`attached`); commands need
 * one, and `session.end` ends it.
 */

/** An answer of the mapper, or an event. */
export type MapperMessage = {
  type?: string;
  id?: number | null;
  result?: unknown;
  stacktrace?: unknown;
};

export type BidiSession = {
  /** Begins the session that the client is attached to. Resolves once the mapper has answered. */
  attach: (capabilities: Capabilities) => Promise<void>;
  /** A message of the client. */
  take: (data: { text: string; isBinary: boolean }) => void;
  /** A message of the mapper. */
  takeOfMapper: (message: MapperMessage) => void;
};

type Sides = {
  toMapper: (command: Command) => void;
  /** Resolves once it has gone. */
  toClient: (message: object) => Promise<void>;
  /** Closes the client's connection, as its session is over. */
  close: () => void;
  newId: () => string;
};

/** No client's id: those are not negative. */
const NEW = -1;
const CLOSE = -2;
/** A command of another module is unknown; of these the mapper says itself which it knows. */
const MODULES = new Set(
  (
    'bluetooth browser browsingContext digitalCredentials emulation goog:cdp input network ' +
    'permissions script session speculation storage userAgentClientHints webExtension'
  ).split(' '),
);
/** What the mapper reads of a `session.new`. */
const OF_MAPPER = /^(?:acceptInsecureCerts|unhandledPromptBehavior|goog:.*)$/;

export function createBidiSession({ toMapper, toClient, close, newId }: Sides): BidiSession {
  let state: 'none' | 'beginning' | 'begun' | 'over' = 'none';
  let isAttached = false;
  /** What answers the `session.new` that the mapper has. */
  let onBegun: ((answer: MapperMessage) => void) | null = null;
  /** Commands that came meanwhile. */
  const waiting: Command[] = [];

  const succeed = (to: Command, result: object) =>
    toClient({ type: 'success', id: to.id, result, ...channelOf(to) });
  const fail = (refusal: Refusal, to?: Command) =>
    void toClient({ ...refusal, ...(to === undefined ? {} : channelOf(to)) });

  function beginMapper(asked: Capabilities): Promise<MapperMessage> {
    state = 'beginning';
    const kept = Object.entries(asked).filter(([name]) => OF_MAPPER.test(name));
    const alwaysMatch = Object.fromEntries(kept);
    const { promise, resolve } = Promise.withResolvers<MapperMessage>();
    onBegun = resolve;
    toMapper({ id: NEW, method: 'session.new', params: { capabilities: { alwaysMatch } } });
    return promise;
  }

  async function begin(command: Command): Promise<void> {
    const { id } = command;
    if (state !== 'none')
      return fail(refuse(id, 'There is a session already.', 'session not created'), command);
    const asked = readNew(command);
    if ('refusal' in asked) return fail(asked.refusal, command);
    const answer = await beginMapper(asked.capabilities);
    if (answer.type === 'success') {
      state = 'begun';
      const { capabilities } = answer.result as { capabilities: Capabilities };
      const presented = presentCapabilities(capabilities);
      void succeed(command, { sessionId: newId(), capabilities: presented });
    } else {
      state = 'none';
      void toClient({ ...withoutStack(answer), id, ...channelOf(command) });
    }
    for (const held of waiting.splice(0)) handle(held);
  }

  async function end(command: Command): Promise<void> {
    state = 'over';
    await succeed(command, {});
    // As a quit does: the session is one of WebDriver, and ends with its browser.
    if (isAttached) toMapper({ id: CLOSE, method: 'browser.close', params: {} });
    else close();
  }

  function handle(command: Command): void {
    const { method } = command;
    if (state === 'beginning') return void waiting.push(command);
    if (method === 'session.status') void succeed(command, statusOf(state === 'none'));
    else if (method === 'session.new') void begin(command);
    else if (state !== 'begun') fail(refuseWithoutSession(command), command);
    else if ((method as string) === 'session.end') void end(command);
    else toMapper(command);
  }

  return {
    async attach(capabilities) {
      isAttached = true;
      await beginMapper(capabilities);
      state = 'begun';
    },
    take({ text, isBinary }) {
      if (isBinary) return fail(refuse(null, 'The message is no text.'));
      const parsed = parseCommand(text);
      if ('refusal' in parsed) fail(parsed.refusal);
      else handle(parsed.command);
    },
    takeOfMapper(message) {
      if (message.id === NEW) onBegun?.(message);
      else if (message.id !== CLOSE) void toClient(withoutStack(message));
    },
  };
}

function statusOf(ready: boolean) {
  return { ready, message: ready ? 'ready' : 'already connected' };
}

function refuseWithoutSession({ id, method }: Command): Refusal {
  return MODULES.has(method.replace(/\.[^.]*$/, ''))
    ? refuse(id, 'There is no session: session.new begins one.', 'invalid session id')
    : refuse(id, `Unknown command '${method}'.`, 'unknown command');
}

/** What a `session.new` asks for, or why there is no such session. */
function readNew({ id, params }: Command): { capabilities: Capabilities } | { refusal: Refusal } {
  const merged = mergeCapabilities((params as { capabilities?: unknown }).capabilities);
  if (typeof merged === 'string') return { refusal: refuse(id, `${merged}.`) };
  const capabilities = merged.find((alternative) => mismatchOf(alternative) === null);
  if (capabilities !== undefined) return { capabilities };
  const reasons = [...new Set(merged.map(mismatchOf))].join('; ');
  return { refusal: refuse(id, `${reasons}.`, 'session not created') };
}

/** Chromium's extension: an answer names the channel of its command. */
function channelOf(command: Command): object {
  const channel = (command as { 'goog:channel'?: unknown })['goog:channel'];
  return typeof channel === 'string' && channel !== '' ? { 'goog:channel': channel } : {};
}

/** The stack of an error names files of this server. */
function withoutStack(message: MapperMessage): object {
  const { stacktrace: _ours, ...rest } = message;
  return message.type === 'error' ? rest : message;
}

/** The mapper has names and versions of its own ("HeadlessChrome/156.0.1.2"). */
function presentCapabilities(capabilities: Capabilities): Capabilities {
  const [, version = ''] = String(capabilities['browserName']).split('/');
  const { webSocketUrl: _none, ...rest } = capabilities;
  return { ...rest, browserName: 'chrome', browserVersion: version, platformName: 'linux' };
}

/** The capabilities that a client was attached with, as its address has them. */
export function attachedCapabilities(text: string): Capabilities {
  try {
    const merged = mergeCapabilities({ alwaysMatch: parseForeignJson(text, { bytesMax: 4_096 }) });
    const [asked] = typeof merged === 'string' ? [] : merged;
    return isRecord(asked) ? asked : {};
  } catch {
    return {};
  }
}

import { request as send, type ClientRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { DriverAddress } from '#src/browsers/link/browser-link.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Connection } from '../connections/connection.ts';
import { ofAddress, type Refused, type TicketAdmission } from '../access/ticket-admission.ts';
import type { Ticket } from '../access/ticket.ts';
import type { Route } from '../routes.ts';
import { BodyTooLarge, bounded, lengthOf, readBody, tooLarge, unlessSilent } from './body.ts';
import type { DriverAgents } from './driver-agents.ts';
import { attachTo } from './new-session.ts';

/** How a command ended; `unanswered`: the driver did not, or the client left. */
export type CommandOutcome = 'ok' | 'error' | 'unanswered';

type CommandRoute = Extract<Route, { to: 'webdriver' }>;

export type CommandOptions = {
  admission: TicketAdmission;
  agents: DriverAgents;
  /** Called while a session is in use; it limits itself. */
  used(session: Ticket): void;
  counted(outcome: CommandOutcome): void;
  /** The longest silence in the middle of a body. */
  bodySilentMs: number;
  log: Logger;
};

/** A page may take 300 s by the default of its time-out, and 30 s are for the way. */
const COMMAND_MS = 330_000;
/** While a command runs its session is in use: a page that loads for minutes is no idle session. */
const USED_EVERY_MS = 30_000;
/**
 * How long the connection of a command is kept for the next one. The API closes it after 4 s. A
 * gateway that stands still for seconds, as on a busy machine, would close it under a command.
 */
const KEPT_MS = 30_000;
/** The body of New Session has some hundred bytes. */
const NEW_SESSION_BYTES_MAX = 64 * 1024;
const NEW_SESSION = { bytesMax: NEW_SESSION_BYTES_MAX, depthMax: 32 };

const METHODS = ['GET', 'POST', 'DELETE'];

/**
 * Passes a WebDriver command to the driver beside the session's browser, and its answer back. While
 * a person holds the session it waits, as what comes by CDP does. It ends with its session and with
 * its client.
 * @param asked `admitted` is called once it is a connection, which has limits of its own
 * @returns why it was refused; null: it was answered, or its client has left
 */
export async function passCommand(
  route: CommandRoute,
  {
    request,
    response,
    admitted,
  }: { request: IncomingMessage; response: ServerResponse; admitted: () => void },
  options: CommandOptions,
): Promise<Refused | null> {
  if (!METHODS.includes(request.method ?? '')) {
    response.setHeader('allow', METHODS.join(', '));
    const context = { method: request.method, allow: METHODS };
    return ofAddress(reject('METHOD_NOT_ALLOWED', context));
  }
  const length = lengthOf(request);
  if (typeof length !== 'number') return length;
  const entered = await options.admission.admit('cdp', route.ticket);
  if (isRejection(entered)) return entered;
  admitted();
  const { connection, session } = entered;
  const use = () => options.used(connection);
  const using = setInterval(use, USED_EVERY_MS);
  use();
  try {
    const driver = session.webdriver ?? null;
    if (driver === null) return noDriver();
    const command = { route, request, response, driver, connection, length };
    const passed = await pass(command, options);
    if (passed === null) use();
    return passed;
  } finally {
    clearInterval(using);
    connection.closed();
  }
}

type Command = {
  route: CommandRoute;
  request: IncomingMessage;
  response: ServerResponse;
  driver: DriverAddress;
  connection: Connection;
  length: number;
};

async function pass(command: Command, options: CommandOptions): Promise<Refused | null> {
  const { route, request, response, driver, connection } = command;
  const gone = new AbortController();
  const onClose = () => gone.abort();
  if (response.closed) gone.abort();
  else response.once('close', onClose);
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), COMMAND_MS).unref();
  const signal = AbortSignal.any([connection.signal, gone.signal, late.signal]);
  try {
    await untilSteering(connection, signal);
    // Only now: while a person holds the session nothing is read, so that nothing comes.
    const arriving = unlessSilent(request, options.bodySilentMs);
    const isNew = route.path === '/session';
    const body = isNew ? attachTo(driver, await readNewSession(arriving)) : null;
    const sent = send({
      agent: options.agents.of(driver),
      method: request.method,
      path: `${driver.path}${route.path}`,
      headers: {
        host: '127.0.0.1',
        'content-type': 'application/json; charset=utf-8',
        'content-length': body === null ? command.length : Buffer.byteLength(body),
      },
      signal,
    });
    const answered = answerOf(sent);
    if (body === null) await Promise.race([pipeline(bounded(arriving), sent), answered]);
    else sent.end(body);
    const answer = await answered;
    // Node's own listener of this event comes first: it sets the 5 s of other requests.
    response.once('finish', () => request.socket.setTimeout(KEPT_MS));
    const status = await sendAnswer(answer, response);
    options.counted(status < 400 ? 'ok' : 'error');
    return null;
  } catch (error) {
    options.counted('unanswered');
    if (gone.signal.aborted) return null;
    if (error instanceof BodyTooLarge) return tooLarge();
    const { organizationId, sessionId } = connection;
    if (!connection.signal.aborted)
      options.log.warn({ err: error, organizationId, sessionId }, 'WebDriver did not answer');
    if (late.signal.aborted && !connection.signal.aborted) return tooLate();
    return await options.admission.unreachable(connection);
  } finally {
    clearTimeout(timer);
    response.off('close', onClose);
  }
}

/** @throws BodyTooLarge */
async function readNewSession(body: AsyncIterable<Buffer>): Promise<unknown> {
  const text = await readBody(body, NEW_SESSION_BYTES_MAX);
  try {
    return parseForeignJson(text, NEW_SESSION);
  } catch {
    return null; // it attaches with the driver's defaults
  }
}

/** Rejects with the request's error, which is no crash where it comes after all was over. */
function answerOf(sent: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject: fail } = Promise.withResolvers<IncomingMessage>();
  sent.once('response', resolve);
  sent.on('error', fail);
  promise.catch(() => undefined);
  return promise;
}

/** @returns its status. @throws Error where it breaks off or is too long; it is cut off then */
async function sendAnswer(answer: IncomingMessage, response: ServerResponse): Promise<number> {
  const { statusCode = 502, headers } = answer;
  const length = headers['content-length'];
  response.writeHead(statusCode, {
    'content-type': headers['content-type'] ?? 'application/json; charset=utf-8',
    ...(length === undefined ? {} : { 'content-length': length }),
    'bss-passed-on': 'yes',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  await pipeline(bounded(answer), response);
  return statusCode;
}

/** Resolves once the client may steer the browser. @throws Error where the signal aborts before */
async function untilSteering(connection: Connection, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject: fail } = Promise.withResolvers<void>();
  const onAbort = () => fail(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  connection.onSteering(() => connection.maySteer() && resolve());
  if (connection.maySteer()) resolve();
  if (signal.aborted) onAbort();
  try {
    await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function noDriver(): Rejection {
  return reject('NOT_FOUND', {}, { message: 'There is no WebDriver beside this browser.' });
}

function tooLate(): Rejection {
  const message = `The driver has not answered within ${COMMAND_MS / 1000} s.`;
  return reject('BROWSER_UNREACHABLE', {}, { message });
}

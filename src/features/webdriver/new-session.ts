import type { IncomingMessage } from 'node:http';
import { sleep } from '#src/kernel/async/sleep.ts';
import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Wanted } from './capabilities.ts';
import type { Drivers } from './drivers.ts';
import type { InnerAnswer, InnerRequests } from './inner-requests.ts';
import { webDriverId } from './session-id.ts';
import { webDriverError, type WebDriverAnswer } from './webdriver-error.ts';

/** What a New Session needs beside the routes of sessions. */
export type NewSession = {
  inner: InnerRequests;
  drivers: Drivers;
  /** Where a gateway takes commands for a session, of this caller. */
  driverUrlOf: (sessionId: string) => string;
  /** Aborts when the client has left. */
  gone: AbortSignal;
  log: Pick<Logger, 'warn'>;
};

/** An answer, and the `Retry-After` of a refusal. */
export type NewSessionAnswer = WebDriverAnswer & { retryAfter?: string };

/** How long a New Session takes at most, from its beginning. */
type Patience = { activeMs: number; answerMs: number };

/**
 * Selenium's client for Python, the least patient one, waits for 120 s. After the browser has come
 * the rest is for the driver: it starts within 100 ms, on a busy machine within seconds.
 */
const PATIENCE: Patience = { activeMs: 85_000, answerMs: 115_000 };
const LOOK_EVERY_MS = 500;
/** How often what has failed is tried to be stopped, half a second apart. */
const STOPS_MAX = 10;
const ANSWER_BYTES_MAX = 64 * 1024;

/**
 * Creates a session, waits for its browser and attaches its driver. What fails, or has lost its
 * client, is stopped.
 */
export async function newSession(
  wanted: Wanted,
  context: NewSession,
  patience = PATIENCE,
): Promise<NewSessionAnswer> {
  const { inner, gone } = context;
  const activeBy = AbortSignal.timeout(patience.activeMs);
  const answerBy = AbortSignal.timeout(patience.answerMs);
  const created = await inner('POST', '/api/sessions', wanted.session);
  if (created.status !== 201) return notCreated(created);
  const id = String(created.body['id']);
  const failed = async (message: string, data?: object): Promise<NewSessionAnswer> => {
    await stop(id, context);
    return webDriverError('session not created', message, data === undefined ? {} : { data });
  };
  const session = await untilActive(created, { ...context, activeBy });
  if (session === null)
    return failed(
      gone.aborted ? 'The client has left.' : 'No browser was free in time; try again later.',
    );
  if (session.body['status'] !== 'active') {
    const { ended_reason: reason } = session.body;
    return failed(`The session has ended before it had a browser: ${String(reason)}.`);
  }
  const attached = await attach(wanted, id, { ...context, answerBy });
  if ('why' in attached) return failed(attached.why, attached.data);
  const { sessionId: driverId, capabilities } = attached;
  const version = String(capabilities['browserVersion']);
  if (wanted.majorVersion !== null && !version.startsWith(`${wanted.majorVersion}.`))
    return failed(`browserVersion is ${version} here.`);
  const failure = await emulate(wanted, id, driverId, { ...context, answerBy });
  if (failure !== null) return failed(failure);
  const value = {
    sessionId: webDriverId({ sessionId: id, driverId }),
    capabilities: presentCapabilities(capabilities, session.body, wanted, driverId),
  };
  return { status: 200, body: { value } };
}

/** Stops what has failed. Where that does not succeed, its idle time ends it. */
async function stop(id: string, { inner, log }: NewSession): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const { status, body } = await inner('DELETE', `/api/sessions/${id}`);
    if (status === 200 || status === 404) return;
    if (tries < STOPS_MAX) await sleep(LOOK_EVERY_MS);
    else return log.warn({ sessionId: id, status, error: body['error'] }, 'session is not stopped');
  }
}

/** @returns null: it has no browser in time, or the client has left */
async function untilActive(
  created: InnerAnswer,
  { inner, gone, activeBy }: NewSession & { activeBy: AbortSignal },
): Promise<InnerAnswer | null> {
  let seen = created;
  while (isWaiting(seen)) {
    if (activeBy.aborted || gone.aborted) return null;
    await sleep(LOOK_EVERY_MS);
    seen = await inner('GET', `/api/sessions/${String(created.body['id'])}`);
  }
  return gone.aborted ? null : seen;
}

/** Also where a read model that is behind, or a limit, has refused to tell. */
function isWaiting({ status, body }: InnerAnswer): boolean {
  return status >= 500 || status === 429 || ['creating', 'queued'].includes(String(body['status']));
}

type Attached = { sessionId: string; capabilities: Record<string, unknown> };

async function attach(
  { driver }: Wanted,
  id: string,
  { drivers, driverUrlOf, gone, answerBy }: NewSession & { answerBy: AbortSignal },
): Promise<Attached | { why: string; data?: object }> {
  const body = JSON.stringify({ capabilities: { alwaysMatch: driver } });
  try {
    const { response } = await drivers.send(driverUrlOf(id), {
      method: 'POST',
      path: '/session',
      body: { bytes: Buffer.byteLength(body), from: body },
      signal: AbortSignal.any([gone, answerBy]),
    });
    const answer = parseForeignJson(await textOf(response), { bytesMax: ANSWER_BYTES_MAX }) as {
      value?: Partial<Attached> & { message?: string };
      code?: string;
      message?: string;
    };
    const { sessionId, capabilities, message } = answer.value ?? {};
    if (sessionId !== undefined && capabilities !== undefined) return { sessionId, capabilities };
    if (answer.value !== undefined) return { why: message ?? 'The driver has refused.' };
    return { why: `The session’s driver: ${answer.message}`, data: answer };
  } catch (error) {
    return {
      why: answerBy.aborted
        ? 'The session’s driver has not answered in time; try again later.'
        : `The session’s driver does not answer: ${String(error)}`,
    };
  }
}

/**
 * Gives the first window the metrics of a device, as chromedriver does of browsers of its own.
 * @returns why it failed; null: it has them
 */
async function emulate(
  { device }: Wanted,
  id: string,
  driverId: string,
  { drivers, driverUrlOf, gone, answerBy }: NewSession & { answerBy: AbortSignal },
): Promise<string | null> {
  if (device === null) return null;
  const { width, height, pixelRatio: deviceScaleFactor, isMobile: mobile, isTouch } = device;
  const metrics = { width, height, deviceScaleFactor, mobile };
  const commands = [
    { cmd: 'Emulation.setDeviceMetricsOverride', params: metrics },
    { cmd: 'Emulation.setTouchEmulationEnabled', params: { enabled: isTouch } },
  ];
  for (const command of commands) {
    const body = JSON.stringify(command);
    try {
      const { response } = await drivers.send(driverUrlOf(id), {
        method: 'POST',
        path: `/session/${driverId}/goog/cdp/execute`,
        body: { bytes: Buffer.byteLength(body), from: body },
        signal: AbortSignal.any([gone, answerBy]),
      });
      const text = await textOf(response);
      if (response.statusCode !== 200) return `mobileEmulation: ${text}`;
    } catch (error) {
      return `mobileEmulation: the session’s driver does not answer: ${String(error)}`;
    }
  }
  return null;
}

/** @throws Error where it is too long for an answer of a New Session */
async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  response.setEncoding('utf8');
  for await (const piece of response as AsyncIterable<string>) {
    text += piece;
    if (text.length > ANSWER_BYTES_MAX) throw new Error('its answer is too long');
  }
  return text;
}

/** The driver's, and how else the session can be reached. `se:cdp` is where Selenium finds CDP. */
function presentCapabilities(
  capabilities: Record<string, unknown>,
  session: Record<string, unknown>,
  { echoed, ignored, isBidi }: Wanted,
  driverId: string,
): Record<string, unknown> {
  const { 'goog:chromeOptions': _ours, ...rest } = capabilities;
  const { id, session_name, cdp_url, bidi_url } = session;
  const { viewer_url, vnc_url, vnc_password, expires_at } = session;
  const named = { id, session_name, cdp_url, bidi_url };
  return {
    ...rest,
    ...echoed,
    platformName: 'linux',
    'se:cdp': cdp_url,
    'se:cdpVersion': rest['browserVersion'],
    ...(isBidi ? { webSocketUrl: webSocketUrl(String(bidi_url), driverId, capabilities) } : {}),
    'bss:session': { ...named, viewer_url, vnc_url, vnc_password, expires_at },
    ...(ignored.length === 0 ? {} : { 'bss:ignored': ignored }),
  };
}

/**
 * Where the session answers by BiDi. The address says what of its capabilities holds there, too: a
 * gateway knows none of them.
 */
function webSocketUrl(
  bidiUrl: string,
  driverId: string,
  { acceptInsecureCerts, unhandledPromptBehavior }: Record<string, unknown>,
): string {
  const capabilities = JSON.stringify({ acceptInsecureCerts, unhandledPromptBehavior });
  return `${bidiUrl}/session/${driverId}?${new URLSearchParams({ capabilities }).toString()}`;
}

/** The refusal of a create, as W3C has it. */
function notCreated({ status, body, retryAfter }: InnerAnswer): NewSessionAnswer {
  const code = String(body['error']);
  const message = `${code}: ${String(body['message'])}`;
  // A field of bss:options, or an option of Chrome that is one.
  const error = status === 400 ? 'invalid argument' : 'session not created';
  const answer = webDriverError(error, message, { data: body });
  return { ...answer, ...(retryAfter === undefined ? {} : { retryAfter }) };
}

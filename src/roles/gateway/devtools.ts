import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { NoPlace, Places } from '#src/kernel/async/places.ts';
import { isRejection, reject } from '#src/kernel/errors.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Admitted, Refused, TicketAdmission } from './access/ticket-admission.ts';
import { changeTab, openPage, readDocument } from './cdp/devtools-json.ts';
import { sendJson, sendText } from './error-response.ts';
import type { Route } from './routes.ts';

type DevtoolsRoute = Extract<Route, { to: 'json' | 'new-page' | 'tab' }>;

export type DevtoolsOptions = {
  admission: TicketAdmission;
  /** The beginning of addresses in an answer to this request: `ws://host:port`, or `wss:`. */
  prefixFor: (request: IncomingMessage) => string;
  /** Bytes of documents that clients have not taken, by organization. */
  documents: Places;
  dialTimeoutMs: number;
  log: Logger;
};

/**
 * Answers Chromium's `/json/…`: documents, new pages, tabs to show or to close. The place of a
 * connection is held until the client has taken the answer.
 */
export async function answerDevtools(
  route: DevtoolsRoute,
  asked: { request: IncomingMessage; response: ServerResponse },
  options: DevtoolsOptions,
): Promise<Refused | null> {
  const entered = await options.admission.admit('cdp', route.ticket);
  if (isRejection(entered)) return entered;
  const { connection } = entered;
  try {
    return await answer(route, asked, entered, options);
  } catch (error) {
    if (!connection.signal.aborted)
      options.log.warn({ err: error, sessionId: connection.sessionId }, 'browser did not answer');
    return await options.admission.unreachable(connection);
  } finally {
    connection.closed();
  }
}

/** Resolves once the system has all of the answer, or the client is gone. @throws once aborted */
async function untilTaken(response: ServerResponse, signal: AbortSignal): Promise<void> {
  if (!response.closed) await once(response, 'close', { signal });
}

async function answer(
  route: DevtoolsRoute,
  { request, response }: { request: IncomingMessage; response: ServerResponse },
  { connection, session: { cdp } }: Admitted,
  { prefixFor, documents, dialTimeoutMs }: DevtoolsOptions,
): Promise<Refused | null> {
  const bound = { timeoutMs: dialTimeoutMs, signal: connection.signal };
  // What waits in a socket is refused here: a request that waits for a person would time out.
  if (route.to !== 'json' && !connection.maySteer())
    return reject('HANDOFF_CONFLICT', {}, { message: 'A person holds the session.' });
  if (route.to === 'tab') {
    const { action, targetId } = route;
    const sentence = await changeTab(action, targetId, cdp, bound);
    if (sentence === null) return reject('NOT_FOUND', { target_id: targetId });
    sendText(response, sentence);
    await untilTaken(response, connection.signal);
    return null;
  }
  const to = { prefix: prefixFor(request), ticket: route.ticket, form: route.form };
  const document =
    route.to === 'json'
      ? await readDocument(route.document, cdp, to, bound)
      : await openPage(route.url, cdp, to, bound);
  const place = documents.take(connection.organizationId, Buffer.byteLength(document));
  if ('refused' in place) return tooMuchUnread(place);
  using _ = place;
  sendJson(response, document);
  await untilTaken(response, connection.signal);
  return null;
}

function tooMuchUnread({ limit }: NoPlace): Refused {
  const message = 'Too many bytes of DevTools documents wait for their clients.';
  const more = { message, retryAfterSeconds: 5 };
  return reject('RATE_LIMIT_EXCEEDED', { of: 'documents', limit }, more);
}

import { handleCreateSession, type CreateResult } from '#src/commands/create-session.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { untilReadable } from '#src/commands/read-your-writes.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { within } from '#src/kernel/async/timeout.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { newId } from '#src/kernel/ids.ts';
import type { EventMetadata } from '#events/envelope.ts';
import type { SessionState } from '#events/session.ts';
import type { Span } from '#src/kernel/telemetry/tracer.ts';
import type { Caller } from '#src/roles/api/auth/authenticate.ts';
import { loadSession, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { timeoutOf, type PageAsked } from './routes/page-call.ts';
import type { readRequest } from '#src/roles/api/sessions/requested-session.ts';
import type { WantedProfile } from '#src/commands/session-profile.ts';
import type { Captured } from './captures.ts';
import { ServiceStopping, stoppingRejection, type OneCalls } from './one-calls.ts';
import { PageFailure, rejectionOfBrowser, shown } from './page-failure.ts';
import { visitPage } from './visit.ts';

/** A call that was admitted, and its session, which is not created yet. */
export type OneCall = {
  asked: PageAsked;
  session: Exclude<ReturnType<typeof readRequest>, Rejection>;
  profile: WantedProfile | null;
  caller: Caller;
  metadata: EventMetadata;
  admitted: Promise<Rejection | null>;
  /** Aborts when the client is gone. */
  gone: AbortSignal;
  /** Aborts when the process stops. */
  stopping: AbortSignal;
  span: Span | null;
};

/** What came of it; `sessionId` is null if no session was made. */
export type Outcome = {
  sessionId: string | null;
  /** Null: the client is gone, and gets no answer. */
  result: Captured | Rejection | null;
  /** The milliseconds of each step, as Server-Timing has them. */
  timing: string;
};

/** The call's time is up. */
class TimeIsUp extends Error {
  override readonly name = 'TimeIsUp';
}
class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

export type Dependencies = ApiDependencies & { oneCalls: OneCalls };

/** A stop that the event store does not take is tried so often; then the session ends by itself. */
const STOP_TRIES = 3;
const STOP_AGAIN_MS = 500;
export const STOP_WITHIN_MS = 5_000;
/** How long the event store is asked why a connection has ended. */
const WHY_WITHIN_MS = 2_000;
const NOTE_MAX = 256;

/**
 * Makes a session, opens a page in its browser through the gateway, takes what is asked for and
 * stops the session, whatever comes of it. The stop is stored before this resolves; if it cannot
 * be, the session ends by its idle time-out.
 */
export async function runOneCall(dependencies: Dependencies, call: OneCall): Promise<Outcome> {
  const begunAt = performance.now();
  const { id } = call.session;
  const ending = new AbortController();
  using _ = abortBy(ending, call);
  let step: Step = 'browser';
  let start: CreateResult['start'] = null;
  let activeAt = begunAt;
  let result: Captured | Rejection | null = null;
  let isRefused = false;
  let takenAt = begunAt;
  try {
    const created = await create(dependencies, call, ending.signal);
    if (isRejection(created)) {
      isRefused = true;
      return { sessionId: null, result: created, timing: '' };
    }
    ({ start } = created);
    activeAt = performance.now();
    const session = activeSession(created.state, ending.signal);
    step = 'page';
    result = await visit(dependencies, call, session, ending.signal);
  } catch (error) {
    if (ending.signal.reason instanceof ClientGone) result = null;
    else result = await rejectionOf(dependencies, call, { error, step, signal: ending.signal });
  } finally {
    takenAt = performance.now();
    // A create without an answer may have made a session, too; the event store may be away then.
    const triesMax = activeAt === begunAt ? 1 : STOP_TRIES;
    if (!isRefused)
      await stop(dependencies, call, { note: noteOf(result, ending.signal), triesMax });
  }
  const timing = timingOf({ begunAt, activeAt, takenAt, start });
  return { sessionId: id, result: result && withSession(result, id), timing };
}

type Step = 'browser' | 'page';

/** Ends the call when its time is up, its client is gone or the process stops. */
function abortBy(ending: AbortController, { asked, gone, stopping }: OneCall): Disposable {
  const late = setTimeout(() => ending.abort(new TimeIsUp()), timeoutOf(asked.body));
  const left = (): void => ending.abort(new ClientGone());
  const stops = (): void => ending.abort(new ServiceStopping('the process stops'));
  const sources = [
    [gone, left],
    [stopping, stops],
  ] as const;
  for (const [signal, abort] of sources)
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort);
  return {
    [Symbol.dispose]() {
      clearTimeout(late);
      for (const [signal, abort] of sources) signal.removeEventListener('abort', abort);
    },
  };
}

async function create(
  dependencies: Dependencies,
  { asked, session, profile, caller, metadata, admitted, span }: OneCall,
  signal: AbortSignal,
): Promise<CreateResult | Rejection> {
  const { organizationId, limits } = caller;
  return handleCreateSession(dependencies, {
    identity: { organizationId, id: session.id },
    command: session.command,
    metadata,
    limits,
    profile,
    admitted,
    waitMs: timeoutOf(asked.body),
    signal,
    span,
  });
}

/** @throws PageFailure if it has ended, the reason of the signal if it has no browser yet */
function activeSession(
  state: SessionState,
  signal: AbortSignal,
): Extract<SessionState, { status: 'active' }> {
  if (state.status === 'active') return state;
  if (state.status === 'stopping' || isFinal(state.status)) throw new PageFailure(endOf(state));
  signal.throwIfAborted();
  throw new TimeIsUp();
}

async function visit(
  { addresses, gatewayUrl }: Dependencies,
  { asked, caller }: OneCall,
  session: Extract<SessionState, { status: 'active' }>,
  signal: AbortSignal,
): Promise<Captured> {
  const address = innerAddress(addresses.cdpUrl(session, caller.keyHash), gatewayUrl);
  const { egress, browser } = session;
  return visitPage(address, { asked, egress, granted: browser.permissions, signal });
}

/** A client's address of the browser, at the gateway as this process reaches it. */
function innerAddress(cdpUrl: string, gatewayUrl: string): string {
  const { pathname } = new URL(cdpUrl);
  const ticket = pathname.slice(pathname.lastIndexOf('/devtools/'));
  return gatewayUrl.replace(/^http/, 'ws').replace(/\/+$/, '') + ticket;
}

/** The rejection for what ended a call. @throws what is a bug, or Unavailable */
async function rejectionOf(
  dependencies: Dependencies,
  { asked, session, caller }: OneCall,
  { error, step, signal }: { error: unknown; step: Step; signal: AbortSignal },
): Promise<Rejection> {
  const reason: unknown = signal.aborted ? signal.reason : error;
  const url = shown(asked.body.url);
  if (reason instanceof TimeIsUp) {
    const context = { url, timeout_ms: timeoutOf(asked.body), waited_for: step };
    return reject('PAGE_TIMEOUT', context);
  }
  if (reason instanceof ServiceStopping) return stoppingRejection();
  const rejection = rejectionOfBrowser(reason, url);
  if (rejection === null) throw reason;
  if (reason instanceof PageFailure && rejection.code !== 'PAGE_CRASHED') return rejection;
  const asking = loadSession(dependencies.context, caller.organizationId, session.id);
  const found = await within(WHY_WITHIN_MS, asking, () => null).catch(() => null);
  const state = found?.state;
  if (state !== undefined && (state.status === 'stopping' || isFinal(state.status)))
    return endOf(state, url);
  return rejection;
}

/** Why a session has ended that this call has not stopped. */
function endOf({ status, endedReason }: SessionState, url?: string): Rejection {
  const context = { status, ended_reason: endedReason };
  if (endedReason === 'browser_crashed' || endedReason === 'out_of_memory')
    return reject('PAGE_CRASHED', { ...(url === undefined ? {} : { url }), ...context });
  return reject('SESSION_ENDED', context);
}

function withSession(result: Captured | Rejection, id: string): Captured | Rejection {
  if (!isRejection(result)) return result;
  return { ...result, context: { session_id: id, ...result.context } };
}

/** For the history: what came of the call. */
function noteOf(result: Captured | Rejection | null, signal: AbortSignal): string {
  if (signal.reason instanceof ClientGone) return 'one call: the client left';
  if (signal.reason instanceof ServiceStopping) return 'one call: the API process stopped';
  if (result === null) return 'one call: an error';
  if (!isRejection(result)) return 'one call: done';
  const { reason } = result.context;
  const why = typeof reason === 'string' ? ` ${reason}` : '';
  return `one call: ${result.code}${why}`.slice(0, NOTE_MAX);
}

/** Stops the session; a failure is logged, and the session ends by its idle time-out. */
async function stop(
  { context, views, oneCalls }: Dependencies,
  { caller: { organizationId }, session: { id }, ...call }: OneCall,
  { note, triesMax }: { note: string; triesMax: number },
): Promise<void> {
  const metadata = { ...call.metadata, commandId: newId('cmd') };
  async function attempt(): Promise<void> {
    const command = { type: 'StopSession', reason: 'user', note, now: context.now() } as const;
    const handled = await handleSessionCommand(context, { organizationId, id }, command, metadata);
    if (!isRejection(handled)) await untilReadable(views, handled.sequence);
  }
  for (let tries = 1; ; tries += 1) {
    try {
      return await within(STOP_WITHIN_MS, attempt());
    } catch (error) {
      if (tries >= triesMax) return oneCalls.notStopped(id, error);
      await sleep(STOP_AGAIN_MS);
    }
  }
}

type Moments = {
  begunAt: number;
  activeAt: number;
  takenAt: number;
  start: CreateResult['start'];
};

function timingOf({ begunAt, activeAt, takenAt, start }: Moments): string {
  const how = start === null ? '' : `;desc=${start}`;
  const stopped = performance.now() - takenAt;
  return (
    `browser;dur=${(activeAt - begunAt).toFixed(1)}${how}, ` +
    `page;dur=${(takenAt - activeAt).toFixed(1)}, stop;dur=${stopped.toFixed(1)}`
  );
}

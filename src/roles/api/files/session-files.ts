import type { SessionState } from '#events/session.ts';
import { givenFileName, safeFileName } from '#src/kernel/domain/session/file-name.ts';
import type { SessionFiles } from '#src/kernel/domain/session/files.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { loadFiles } from '#src/kernel/event-store/load-files.ts';
import type { FileAnswer, FileQuestion } from '#src/kernel/messaging/session-files.ts';
import { loadSession, type ApiDependencies } from '../dependencies.ts';
import { currentSessionView, notActive } from '../sessions/current-session.ts';

type Dependencies = Pick<
  ApiDependencies,
  'context' | 'views' | 'sessionEvents' | 'serverQuestions' | 'filesRetainMs'
>;

/** A session that can be asked for its files; `files` is empty once they are kept no longer. */
export type Found = { state: SessionState; files: SessionFiles };

/** The session and its files; null: the organization has no session of that id. */
export async function findFiles(
  dependencies: ApiDependencies,
  organizationId: string,
  id: string,
): Promise<Found | null> {
  const view = await currentSessionView(dependencies, organizationId, id);
  if (view === null) return null;
  const state = JSON.parse(view) as SessionState;
  const { context, filesRetainMs } = dependencies;
  const isOver =
    isFinal(state.status) &&
    context.now() > Date.parse(state.endedAt ?? state.createdAt) + filesRetainMs;
  const hasBrowser = state.startedAt !== null;
  if (isOver || !hasBrowser) return { state, files: new Map() };
  return { state, files: await loadFiles(context.eventStore, { organizationId, id }) };
}

/** The active session, or why there is none. */
export async function activeSession(
  dependencies: ApiDependencies,
  organizationId: string,
  id: string,
): Promise<Extract<SessionState, { status: 'active' }> | Rejection> {
  const view = await currentSessionView(dependencies, organizationId, id);
  if (view === null) return reject('SESSION_NOT_FOUND', { session_id: id });
  const state = JSON.parse(view) as SessionState;
  if (state.status === 'active') return state;
  return notActive(state) ?? reject('SESSION_NOT_FOUND', { session_id: id });
}

/** The name that the caller gave, or why it is none. */
export function nameOf(given: string): string | Rejection {
  const name = givenFileName(given);
  const shown = given.toWellFormed().slice(0, SHOWN_MAX);
  return name ?? reject('INVALID_FILE_NAME', { name: shown, suggestion: safeFileName(given) });
}
const SHOWN_MAX = 300;

/** Asks the server that runs the session. */
export function askServer(
  { serverQuestions }: Pick<Dependencies, 'serverQuestions'>,
  { organizationId, id, workload }: Extract<SessionState, { status: 'active' }>,
  asked: Asked,
): Promise<FileAnswer> {
  const { serverId, workloadId } = workload;
  const question = { organizationId, sessionId: id, workloadId, ...asked };
  return serverQuestions.ask(serverId, 'files', question);
}
type Asked = DistributiveOmit<FileQuestion, 'organizationId' | 'sessionId' | 'workloadId'>;
type DistributiveOmit<Whole, Names extends PropertyKey> = Whole extends unknown
  ? Omit<Whole, Names>
  : never;

/** Seconds after which a server or a browser may answer again. */
const RETRY_SECONDS = 5;

/** The rejection where the server did not do what it was asked for. */
export async function refusalOf(
  { context }: Pick<Dependencies, 'context'>,
  { organizationId, id }: SessionState,
  name: string,
  answer: FileAnswer,
): Promise<Rejection> {
  switch (answer.kind) {
    case 'refused':
      return tooMuch(id, name, answer);
    case 'no-file':
      return reject('FILE_NOT_FOUND', { session_id: id, name });
    case 'not-here': {
      // The session may have ended a moment ago.
      const session = await loadSession(context, organizationId, id);
      const refusal = session === null ? null : notActive(session.state);
      const again = { retryAfterSeconds: 1 };
      return refusal ?? reject('UNAVAILABLE', { part: 'browser-server' }, again);
    }
    case 'no-server':
      return reject(
        'UNAVAILABLE',
        { part: 'browser-server' },
        {
          retryAfterSeconds: RETRY_SECONDS,
          message: 'The session’s server does not answer; try again.',
        },
      );
    default:
      return reject('BROWSER_UNREACHABLE', {}, { retryAfterSeconds: RETRY_SECONDS });
  }
}

/** The rejection of a file that is more than the session may have. */
export function tooMuch(
  id: string,
  name: string,
  { reason, max, of }: { reason: 'too_large' | 'quota'; max: number; of: 'bytes' | 'files' },
): Rejection {
  const code = reason === 'too_large' ? 'FILE_TOO_LARGE' : 'FILES_QUOTA_EXCEEDED';
  return reject(code, { session_id: id, name, [`max_${of}`]: max });
}

import type { Static } from 'typebox';
import type { Role } from '#events/organization.ts';
import type { SessionStatus } from '#events/session.ts';
import type * as debug from '#src/features/debugger-address/routes/schemas.ts';
import type { CreateSessionBody, UpdateSessionBody } from '#src/roles/api/schemas/requests.ts';
import type * as told from '#src/roles/api/schemas/history.ts';
import type * as schemas from '#src/roles/api/schemas/sessions.ts';
import type {
  SessionsStopped as Stopped,
  StopSessionsBody,
} from '#src/roles/api/schemas/stop-sessions.ts';
import { ServiceError } from './failures.ts';
import {
  createFiles,
  type DownloadLike,
  type FileContent,
  type FileSource,
  type FilesZip,
  type SaveOptions,
  type SessionFile,
  type SessionFiles,
  type UploadedFile,
  type UploadOptions,
} from './files.ts';
import { followEvents, type EventsOptions, type ServiceEvent } from './follow-events.ts';
import {
  requestHandoff,
  type Handoff,
  type HandoffOptions,
  type RequestHandoff,
} from './handoff.ts';
import { createRecordings, type SessionRecording, type SessionRecordings } from './recordings.ts';
import {
  queryOf,
  type CallOptions,
  type Request,
  type Requester,
  type StreamOptions,
} from './requester.ts';
import {
  createSteering,
  type CreatedShare,
  type CreateShare,
  type SessionSteering,
} from './steering.ts';

/** Fields whose schema is an enum of event data, so that no literal type can be derived. */
type Worded<Answer> = {
  [Field in keyof Answer]: Field extends 'status'
    ? SessionStatus
    : Field extends 'organization_role'
      ? Role
      : Answer[Field];
};

export type Session = Worded<Static<typeof schemas.Session>>;
export type SessionSummary = Worded<Static<typeof schemas.SessionSummary>>;
export type SessionList = Omit<Static<typeof schemas.SessionList>, 'sessions'> & {
  sessions: SessionSummary[];
};
export type SessionAccess = Worded<Static<typeof schemas.SessionAccess>>;
export type DebuggerAddress = Static<typeof debug.DebuggerAddress>;
export type DebuggerAddressClosed = Static<typeof debug.DebuggerAddressClosed>;
export type SessionExtended = Worded<Static<typeof schemas.SessionExtended>>;
export type SessionStopped = Static<typeof schemas.SessionStopped>;
/** A page of a session's events, and why it is where it is. */
export type SessionHistory = Static<typeof told.SessionHistory>;
export type SessionWhy = Static<typeof told.SessionWhy>;
export type SessionsStopped = Static<typeof Stopped>;
/** Fields that are left out stay as they are; `labels` replaces all labels. */
export type UpdateSession = Static<typeof UpdateSessionBody>;
export type StopSessions = Static<typeof StopSessionsBody>;
/** Parameters of a new session; durations as `30m` or `1h30m`. */
export type CreateSession = Omit<Static<typeof CreateSessionBody>, 'duration' | 'idle_timeout'> & {
  duration?: string;
  idle_timeout?: string;
};

/** A JPEG picture. */
export type Screenshot = {
  bytes: Uint8Array<ArrayBuffer>;
  /** Names the picture; the same picture has the same one. */
  etag: string;
};

export type ScreenshotOptions = CallOptions & {
  /** The picture's greatest width in pixels, 64 to 3840; default 1280. */
  maxWidth?: number;
  /** The etag of the picture that the caller has. */
  etag?: string;
};

export type CreateOptions = CallOptions & {
  /** Idempotency key; default: a random UUID. */
  idempotencyKey?: string;
  /** How long to wait until the session is active; default 2 minutes, 0: do not wait. */
  waitMs?: number;
};

/** A session with its methods; `await using` stops it. */
export type LiveSession = Omit<Session, 'handoff'> & {
  /** `handoff` in the API; null: there was none. */
  lastHandoff: Handoff | null;
  stop(options?: CallOptions): Promise<SessionStopped>;
  extend(duration: string, options?: CallOptions): Promise<SessionExtended>;
  access(options?: CallOptions): Promise<SessionAccess>;
  rotateAccess(options?: CallOptions): Promise<SessionAccess>;
  openDebuggerAddress(options?: CallOptions): Promise<DebuggerAddress>;
  closeDebuggerAddress(options?: CallOptions): Promise<DebuggerAddressClosed>;
  handoff(asked: RequestHandoff, options?: HandoffOptions): Promise<Handoff>;
  share(asked: CreateShare, options?: CallOptions): Promise<CreatedShare>;
  screenshot(options?: ScreenshotOptions): Promise<Screenshot | null>;
  events(options?: EventsOptions): AsyncGenerator<ServiceEvent, void, void>;
  listFiles(options?: CallOptions): Promise<SessionFile[]>;
  downloadFile(name: string, options?: StreamOptions): Promise<FileContent>;
  uploadFile(source: FileSource, options?: UploadOptions): Promise<UploadedFile>;
  removeFile(name: string, options?: CallOptions): Promise<void>;
  filesZip(options?: StreamOptions): Promise<FilesZip>;
  saveDownload(download: DownloadLike, options?: SaveOptions): Promise<FileContent>;
  recording(options?: CallOptions): Promise<SessionRecording>;
  recordingSegment(name: string, options?: StreamOptions): Promise<FileContent>;
} & AsyncDisposable;

/** What a session leaves, and who else steers or watches it. */
type BesideIt = SessionFiles & SessionRecordings & SessionSteering;

/** Every method throws ServiceError if the service refuses, and NoAnswer without an answer. */
export type Sessions = BesideIt & {
  /**
   * Creates a session and waits until it is active, unless `waitMs` is 0. A session that does not
   * become active is stopped, and so is one that may have been made by a create that was aborted or
   * got no answer, unless it had a key of the caller, who may repeat it. That takes at most 40 s.
   * @throws ServiceError with SESSION_NOT_READY or SESSION_ENDED if it does not become active
   */
  create(asked?: CreateSession, options?: CreateOptions): Promise<LiveSession>;
  get(id: string, options?: CallOptions): Promise<LiveSession>;
  list(query?: ListQuery, options?: CallOptions): Promise<SessionList>;
  extend(id: string, duration: string, options?: CallOptions): Promise<SessionExtended>;
  stop(id: string, options?: CallOptions): Promise<SessionStopped>;
  /** Changes name, description or labels. */
  update(id: string, changes: UpdateSession, options?: CallOptions): Promise<LiveSession>;
  /**
   * Stops the open sessions that match the filter, at most 1,000 a call. Without an answer it is
   * not repeated: sessions that began meanwhile would be stopped, too.
   */
  stopAll(asked: StopSessions, options?: CallOptions): Promise<SessionsStopped>;
  access(id: string, options?: CallOptions): Promise<SessionAccess>;
  /** Replaces the session's addresses; those of before are refused, and connections closed. */
  rotateAccess(id: string, options?: CallOptions): Promise<SessionAccess>;
  /** A host and port of the session's own, where the operator allows it. */
  openDebuggerAddress(id: string, options?: CallOptions): Promise<DebuggerAddress>;
  /** Closes all such ports of the session. */
  closeDebuggerAddress(id: string, options?: CallOptions): Promise<DebuggerAddressClosed>;
  /** What the session's browser shows; null: still the picture of `etag`. */
  screenshot(id: string, options?: ScreenshotOptions): Promise<Screenshot | null>;
  /** What an ended session's browser showed last; null: still the picture of `etag`. */
  thumbnail(id: string, options?: Omit<ScreenshotOptions, 'maxWidth'>): Promise<Screenshot | null>;
  /**
   * Asks a person for help, and resolves when that is over: `status` is `completed`, with the
   * person's `note` and `success`, or `expired`. CDP commands that are sent meanwhile wait while a
   * person has the browser.
   */
  handoff(id: string, asked: RequestHandoff, options?: HandoffOptions): Promise<Handoff>;
  /**
   * @throws ServiceError with SESSION_NOT_READY after `waitMs`, SESSION_ENDED if it has ended
   */
  waitUntilActive(id: string, options?: CallOptions & { waitMs?: number }): Promise<LiveSession>;
  /** A page of its events, each with what it changed; `next` is `after` of the next page. */
  history(id: string, query?: HistoryQuery, options?: CallOptions): Promise<SessionHistory>;
  /** Why it ended, or why it is where it is, in sentences. */
  why(id: string, options?: CallOptions): Promise<SessionWhy>;
  /** All events of the session, from the first to the last. */
  events(id: string, options?: EventsOptions): AsyncGenerator<ServiceEvent, void, void>;
};

export type ListQuery = {
  limit?: number;
  offset?: number;
  status?: SessionStatus;
  labels?: Record<string, string>;
  user_id?: string;
};

export type HistoryQuery = { limit?: number; after?: number };

const WAIT_MS = 120_000;
const CREATE = { method: 'POST', path: '/api/sessions' } as const;
const RESPOND_ASYNC = { prefer: 'respond-async' };
/**
 * For stopping the session of a failed create, longer than the longest Retry-After that is waited
 * for; after it the session runs until its own end.
 */
const TAKE_BACK_MS = 40_000;

/** @see Sessions.create */
async function createAndWait(
  requester: Requester,
  sessions: Sessions,
  asked: CreateSession = {},
  { waitMs = WAIT_MS, ...options }: CreateOptions = {},
): Promise<LiveSession> {
  options.signal?.throwIfAborted();
  const { idempotencyKey = crypto.randomUUID() } = options;
  const create: Request = { ...CREATE, body: asked, idempotencyKey };
  let session: Session | null = null;
  try {
    const headers = waitMs === 0 ? RESPOND_ASYNC : {};
    session = await requester.json<Session>({ ...options, ...create, headers });
    if (waitMs === 0 || session.status === 'active') return withMethods(sessions, session);
    return await sessions.waitUntilActive(session.id, { ...options, waitMs });
  } catch (error) {
    // The caller gets the error and not the session's id, so it could not stop the session.
    const signal = AbortSignal.timeout(TAKE_BACK_MS);
    const isUnknown = !(error instanceof ServiceError) && options.idempotencyKey === undefined;
    try {
      // Without an answer there may be one: the key names it when it is asked again.
      if (session === null && isUnknown)
        session = await requester.json<Session>({ ...create, headers: RESPOND_ASYNC, signal });
      if (session !== null) await sessions.stop(session.id, { signal });
    } catch {
      // What the caller has to know is why there is no session.
    }
    throw error;
  }
}

/** How to connect to a session. */
function createAccess(
  requester: Requester,
): Pick<Sessions, 'access' | 'rotateAccess' | 'openDebuggerAddress' | 'closeDebuggerAddress'> {
  return {
    access: (id, options) =>
      requester.json({ method: 'GET', path: `${pathOf(id)}/access`, ...options }),
    rotateAccess: (id, options) =>
      requester.json({ method: 'POST', path: `${pathOf(id)}/rotate-access`, ...options }),
    openDebuggerAddress: (id, options) =>
      requester.json({ method: 'POST', path: `${pathOf(id)}/debugger-address`, ...options }),
    closeDebuggerAddress: (id, options) =>
      requester.json({ method: 'DELETE', path: `${pathOf(id)}/debugger-address`, ...options }),
  };
}

export function createSessions(requester: Requester): Sessions {
  const sessions: Sessions = {
    create: (asked, options) => createAndWait(requester, sessions, asked, options),
    async get(id, options) {
      return withMethods(
        sessions,
        await requester.json({ method: 'GET', path: pathOf(id), ...options }),
      );
    },
    list: (query = {}, options) =>
      requester.json({
        method: 'GET',
        path: '/api/sessions',
        query: parametersOf(query),
        ...options,
      }),
    extend(id, duration, options) {
      const path = `${pathOf(id)}/extend`;
      const idempotencyKey = crypto.randomUUID();
      const body = { duration };
      return requester.json({ method: 'POST', path, body, idempotencyKey, ...options });
    },
    stop: (id, options) => requester.json({ method: 'DELETE', path: pathOf(id), ...options }),
    async update(id, changes, options) {
      const path = pathOf(id);
      return withMethods(
        sessions,
        await requester.json({ method: 'PATCH', path, body: changes, ...options }),
      );
    },
    stopAll: (asked, options) =>
      requester.json({ method: 'POST', path: '/api/sessions/stop', body: asked, ...options }),
    ...createAccess(requester),
    handoff: (id, asked, options) => requestHandoff(requester, pathOf(id), asked, options),
    ...createPictures(requester),
    async waitUntilActive(id, { waitMs = WAIT_MS, ...options } = {}) {
      const session = await sessions.get(id, options);
      if (session.status === 'active') return session;
      await untilSettled(session, { waitMs, signal: options.signal });
      const settled = await sessions.get(id, options);
      if (settled.status !== 'active') throw ended(settled);
      return settled;
    },
    ...createHistories(requester),
    ...createFiles(requester, pathOf),
    ...createRecordings(requester, pathOf),
    ...createSteering(requester, pathOf),
  };
  return sessions;
}

/** What happened to a session. */
function createHistories(requester: Requester): Pick<Sessions, 'history' | 'why' | 'events'> {
  return {
    history(id, query = {}, options) {
      const path = `${pathOf(id)}/history`;
      return requester.json({ method: 'GET', path, query: parametersOf(query), ...options });
    },
    why: (id, options) => requester.json({ method: 'GET', path: `${pathOf(id)}/why`, ...options }),
    events: (id, options = {}) =>
      followEvents(requester, { path: `${pathOf(id)}/events`, isOneSession: true }, options),
  };
}

/** What a session's browser shows, or showed last. */
function createPictures(requester: Requester): Pick<Sessions, 'screenshot' | 'thumbnail'> {
  return {
    screenshot: (id, options = {}) => requester.read(screenshotRequest(id, options), readPicture),
    thumbnail: (id, options = {}) =>
      requester.read(screenshotRequest(id, options, 'thumbnail'), readPicture),
  };
}

/** The session with its methods. */
function withMethods(sessions: Sessions, session: Session): LiveSession {
  const { id, handoff: lastHandoff, ...fields } = session;
  return {
    ...fields,
    id,
    lastHandoff,
    stop: (options) => sessions.stop(id, options),
    extend: (duration, options) => sessions.extend(id, duration, options),
    access: (options) => sessions.access(id, options),
    rotateAccess: (options) => sessions.rotateAccess(id, options),
    openDebuggerAddress: (options) => sessions.openDebuggerAddress(id, options),
    closeDebuggerAddress: (options) => sessions.closeDebuggerAddress(id, options),
    handoff: (asked, options) => sessions.handoff(id, asked, options),
    share: (asked, options) => sessions.createShare(id, asked, options),
    screenshot: (options) => sessions.screenshot(id, options),
    events: (options) => sessions.events(id, options),
    listFiles: (options) => sessions.listFiles(id, options),
    downloadFile: (name, options) => sessions.downloadFile(id, name, options),
    uploadFile: (source, options) => sessions.uploadFile(id, source, options),
    removeFile: (name, options) => sessions.removeFile(id, name, options),
    filesZip: (options) => sessions.filesZip(id, options),
    saveDownload: (download, options) => sessions.saveDownload(id, download, options),
    recording: (options) => sessions.recording(id, options),
    recordingSegment: (name, options) => sessions.recordingSegment(id, name, options),
    async [Symbol.asyncDispose]() {
      await sessions.stop(id);
    },
  };
}

function screenshotRequest(
  id: string,
  { maxWidth, etag, ...options }: ScreenshotOptions,
  which: 'screenshot' | 'thumbnail' = 'screenshot',
): Request {
  return {
    method: 'GET',
    path: `${pathOf(id)}/${which}`,
    query: maxWidth === undefined ? [] : [['max_width', String(maxWidth)]],
    headers: etag === undefined ? {} : { 'if-none-match': etag },
    ...options,
  };
}

async function readPicture(response: Response): Promise<Screenshot | null> {
  const bytes = new Uint8Array(await response.arrayBuffer());
  return response.status === 200 ? { bytes, etag: response.headers.get('etag') ?? '' } : null;
}

function parametersOf({ labels = {}, ...plain }: ListQuery & HistoryQuery): [string, string][] {
  return [
    ...queryOf(plain),
    ...Object.entries(labels).map(([name, value]): [string, string] => [
      'label',
      `${name}=${value}`,
    ]),
  ];
}

/** Waits for an event that makes the session active or ends it. @throws ServiceError */
async function untilSettled(
  session: LiveSession,
  { waitMs, signal }: { waitMs: number; signal: AbortSignal | undefined },
): Promise<void> {
  const late = AbortSignal.timeout(waitMs);
  const either = signal === undefined ? late : AbortSignal.any([late, signal]);
  try {
    for await (const { type } of session.events({ signal: either }))
      if (type === 'session.activated' || type === 'session.stop-requested') return;
  } catch (error) {
    if (!late.aborted || signal?.aborted === true) throw error;
    const message = `The session is not active after ${waitMs} ms.`;
    const context = { session_id: session.id, status: session.status };
    throw new ServiceError({ error: 'SESSION_NOT_READY', message, code: 409, context });
  }
}

function ended({ id, status, ended_reason }: LiveSession): ServiceError {
  const message = `The session has ended: ${ended_reason ?? status}.`;
  const context = { session_id: id, status, ended_reason };
  return new ServiceError({ error: 'SESSION_ENDED', message, code: 410, context });
}

function pathOf(id: string): string {
  return `/api/sessions/${encodeURIComponent(id)}`;
}

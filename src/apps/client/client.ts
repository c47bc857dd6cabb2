/**
 * The client of the Browser Session Service: `createClient({ url, apiKey })`. It needs only
 * `fetch`, in Node or in a browser, and imports only types of the service.
 */
import { createExtensions, type Extensions } from './extensions.ts';
import { followEvents, type EventsOptions, type ServiceEvent } from './follow-events.ts';
import { createOperator, type Operator } from './operator.ts';
import { createOrganization, type OrganizationCalls } from './organization.ts';
import { createPages, type Pages } from './pages.ts';
import { createProfiles, type Profiles } from './profiles.ts';
import { createRequester, type RequesterOptions } from './requester.ts';
import { createService, type Service } from './service.ts';
import { createSessions, type Sessions } from './sessions.ts';
import { createWebhooks, type Webhooks } from './webhooks.ts';

export { connect, type PlaywrightLike, type PuppeteerLike } from './connect.ts';
export { DownloadRefused, NoAnswer, ServiceError, type ErrorName } from './failures.ts';
export type {
  DownloadLike,
  FileContent,
  FileSource,
  FilesZip,
  SaveOptions,
  SessionFile,
  SessionFiles,
  UploadedFile,
  UploadOptions,
} from './files.ts';
export type { Handoff, HandoffOptions, RequestHandoff } from './handoff.ts';
export type { Extension, Extensions } from './extensions.ts';
export type { EventsOptions, ServiceEvent } from './follow-events.ts';
export type {
  Audits,
  DeadLetters,
  DecidedDeadLetter,
  DrainedServer,
  EventsQuery,
  Operator,
  OperatorEvents,
  OperatorOrganizations,
  OperatorServers,
  PoolDecisions,
  ReadModels,
  Rebuild,
} from './operator.ts';
export type {
  IssuedKey,
  IssueKey,
  Key,
  Organization,
  OrganizationCalls,
  PoolQuery,
  PoolSeries,
  Queue,
  RevokedKey,
  Usage,
  UsageQuery,
} from './organization.ts';
export type { PageContent, PageFile, PagePdf, Pages, PageScreenshot, PageToRead } from './pages.ts';
export type { Profile, ProfileList, Profiles, ProfileSummary } from './profiles.ts';
export type { RecordingSegment, SessionRecording, SessionRecordings } from './recordings.ts';
export type { CallOptions, StreamOptions } from './requester.ts';
export type { Health, Readiness, Service, ServiceStatus } from './service.ts';
export { setInputFiles, type LocatorLike } from './set-input-files.ts';
export type {
  CreateOptions,
  CreateSession,
  LiveSession,
  Screenshot,
  ScreenshotOptions,
  Session,
  DebuggerAddress,
  DebuggerAddressClosed,
  SessionAccess,
  SessionExtended,
  SessionHistory,
  SessionList,
  Sessions,
  SessionsStopped,
  SessionStopped,
  StopSessions,
  UpdateSession,
  SessionSummary,
  SessionWhy,
} from './sessions.ts';
export type {
  CompleteHandoff,
  CreatedShare,
  CreateShare,
  RevokedShare,
  SessionSteering,
  Share,
  TakenHandoff,
} from './steering.ts';
export type {
  ChangeWebhook,
  CreateWebhook,
  Delivery,
  DeliveryPage,
  RotatedWebhookSecret,
  Webhook,
  Webhooks,
  WebhookWithSecret,
} from './webhooks.ts';

export type ClientOptions = RequesterOptions;

export type Client = Pages & {
  sessions: Sessions;
  extensions: Extensions;
  profiles: Profiles;
  webhooks: Webhooks;
  organization: OrganizationCalls;
  service: Service;
  /** With OPERATOR_TOKEN as `apiKey`. */
  operator: Operator;
  /**
   * The organization's events as they happen, in order, each once, beginning at `from` if given.
   * Reconnects by itself until the loop is left or the signal aborts.
   * @throws ServiceError if the service refuses, NoAnswer after ten failed tries in a row
   */
  events(options?: EventsOptions): AsyncGenerator<ServiceEvent, void, void>;
};

/**
 * A client for one API key. Requests that fail in transit, or that the service asks to retry later,
 * are retried, three times by default. Creates and extensions carry an idempotency key.
 */
export function createClient(options: ClientOptions): Client {
  const requester = createRequester(options);
  return {
    sessions: createSessions(requester),
    extensions: createExtensions(requester),
    profiles: createProfiles(requester),
    webhooks: createWebhooks(requester),
    organization: createOrganization(requester),
    service: createService(requester),
    operator: createOperator(requester),
    ...createPages(requester),
    events: (eventsOptions = {}) => followEvents(requester, { path: '/api/events' }, eventsOptions),
  };
}

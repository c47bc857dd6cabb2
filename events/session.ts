import { Type, type Static } from 'typebox';
import { BlackBox } from './session/black-box.ts';
import type { EventOf } from './envelope.ts';
import {
  EgressEnforcement,
  egressEvents,
  EgressRules,
  EgressTotals,
  EgressTraffic,
} from './egress.ts';
import { SessionExtensions } from './organization/extension.ts';
import { CarriedForward, ExitCode, Moment as Timestamp, ServerId, WorkloadId } from './fields.ts';
import { fileEvents } from './session/files.ts';
import { Handoff, handoffEvents } from './handoff.ts';
import { Recording, recordingEvents } from './session/recording.ts';
import { AskedProfile, SessionProfile, sessionProfileEvents } from './profile.ts';
import { Share, shareEvents, sharesMax } from './share.ts';

const ID = '^[A-Za-z0-9_-]{1,64}$';
const Id = Type.String({ pattern: ID });
const Credits = Type.Integer({ minimum: 0, description: 'one credit is one session-minute' });
const Host = Type.String({ description: 'internal address, never shown to clients' });
const Port = Type.Integer({ description: 'internal port, never shown to clients' });

export const statuses = ['creating', 'queued', 'active', 'stopping', 'stopped', 'failed'] as const;
export type SessionStatus = (typeof statuses)[number];

/** The reason of a request to stop. */
export const StopReason = Type.Union(
  [
    Type.Literal('user'),
    Type.Literal('expired'),
    Type.Literal('idle'),
    Type.Literal('organization'),
    Type.Literal('operator'),
    Type.Literal('browser_closed'),
  ],
  { description: 'why the session was stopped' },
);
export type StopReason = Static<typeof StopReason>;

/** The reason of an end without a request to stop. */
export const FailureReason = Type.Union(
  [
    Type.Literal('launch_failed'),
    Type.Literal('queue_timeout'),
    Type.Literal('browser_crashed'),
    Type.Literal('out_of_memory'),
    Type.Literal('server_lost'),
  ],
  { description: 'why the session failed' },
);
export type FailureReason = Static<typeof FailureReason>;

/** The browser of a session. Endpoints are for the gateway, never for clients. */
export const SessionWorkload = Type.Object(
  {
    workloadId: WorkloadId,
    serverId: ServerId,
    serverIp: Type.String({ description: 'the server’s private address' }),
    cdp: Type.Object(
      {
        host: Host,
        port: Port,
        path: Type.String({ description: 'path of the browser’s CDP WebSocket' }),
      },
      { description: 'CDP address of the browser inside the network' },
    ),
    vnc: Type.Object(
      { host: Host, port: Port },
      { description: 'VNC address of the browser inside the network' },
    ),
    link: Type.Optional(
      Type.Literal('tls-psk', {
        description:
          'both addresses are reached through TLS with a key of the workload; absent: TCP',
      }),
    ),
    egress: Type.Optional(EgressEnforcement),
    webdriver: Type.Optional(
      Type.Object(
        {
          host: Host,
          port: Port,
          cdpPort: Type.Integer({
            minimum: 1,
            maximum: 65_535,
            description: 'where the driver finds the browser, on its own loopback',
          }),
        },
        { description: 'address of the WebDriver beside the browser; absent: there is none' },
      ),
    ),
  },
  { description: 'the browser that serves the session' },
);
export type SessionWorkload = Static<typeof SessionWorkload>;

/** Where a session's browser says it is. */
export const Geolocation = Type.Object(
  {
    latitude: Type.Number({ minimum: -90, maximum: 90, description: 'degrees, north is positive' }),
    longitude: Type.Number({
      minimum: -180,
      maximum: 180,
      description: 'degrees, east is positive',
    }),
    accuracy: Type.Number({ minimum: 0, description: 'metres' }),
  },
  { description: 'where the browser says it is; absent: it does not know' },
);
export type Geolocation = Static<typeof Geolocation>;

/** What a session's browser pretends to be, as options of the browser; absent: nothing. */
const emulation = {
  geolocation: Type.Optional(Geolocation),
  userAgent: Type.Optional(
    Type.String({ description: 'sent with each request in place of Chromium’s own' }),
  ),
  permissions: Type.Optional(
    Type.Array(Type.String(), {
      description: 'granted to all pages, by their names in the Permissions API, sorted',
    }),
  ),
};

/** The browser options that a caller may set; null means the default. */
export const BrowserOptions = Type.Object(
  {
    viewport: Type.Union(
      [
        Type.Object({
          width: Type.Integer({ description: 'pixels' }),
          height: Type.Integer({ description: 'pixels' }),
        }),
        Type.Null(),
      ],
      { description: 'size of the screen and of the window on it; null: the default' },
    ),
    locale: Type.Union([Type.String(), Type.Null()], {
      description: 'language, as `de-CH`; null: the default',
    }),
    timezone: Type.Union([Type.String(), Type.Null()], {
      description: 'as `Europe/Zurich`; null: the default',
    }),
    headless: Type.Optional(
      Type.Boolean({ description: 'true: the browser has no screen and no VNC' }),
    ),
    extensions: Type.Optional(SessionExtensions),
    ...emulation,
  },
  { description: 'options of the browser' },
);
export type BrowserOptions = Static<typeof BrowserOptions>;

const Labels = Type.Record(Type.String(), Type.String(), {
  description: 'labels that the client chose',
});

/** Attributes of a session that are known from its request on. */
const requested = {
  name: Type.String({ minLength: 1, maxLength: 128, description: 'for people' }),
  description: Type.String({ maxLength: 1024, description: 'free text' }),
  userId: Type.String({ description: 'user that created the session' }),
  labels: Labels,
  browser: BrowserOptions,
  egress: Type.Optional(EgressRules),
  idleTimeoutMs: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
    description: 'idle timeout in milliseconds without a connection; null: none',
  }),
  createdAt: Timestamp,
  expiresAt: Timestamp,
  creditsReserved: Credits,
  fingerprint: Type.Union([Type.String(), Type.Null()], {
    description: 'hash of the request body, if the request had an Idempotency-Key',
  }),
  queueWeight: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'share of the organization while requests wait, by its tier; absent: 1',
    }),
  ),
  record: Type.Optional(
    Type.Boolean({ description: 'true: what the screen shows is recorded; absent: false' }),
  ),
  blackBox: Type.Optional(
    Type.Literal(false, { description: 'its end tells nothing of what its pages did' }),
  ),
  profile: Type.Optional(AskedProfile),
  owner: Type.Optional(
    Type.Object(
      { mcpSessionId: Type.String({ pattern: ID, description: 'id of the MCP session' }) },
      { description: 'what it ends with; absent: nothing' },
    ),
  ),
};

/** In the event of an end; absent: there is none. */
const toldBefore = { blackBox: Type.Optional(BlackBox) };

/** A request that may be repeated, as hashes of its Idempotency-Key and of its body. */
export const Repeatable = Type.Object(
  {
    key: Type.String({ pattern: ID, description: 'hash of the Idempotency-Key' }),
    fingerprint: Type.String({ description: 'hash of the request body' }),
  },
  { description: 'set if the request had an Idempotency-Key' },
);
export type Repeatable = Static<typeof Repeatable>;

/** The last extensions with a key that a session remembers: 5 KB of its state at most. */
export const keyedExtensionsMax = 32;

const Assignment = Type.Object({ workloadId: WorkloadId, serverId: ServerId });

/**
 * One schema per event. The key is the CloudEvents type; its last word is the subject's last token.
 */
export const sessionEvents = {
  'session.requested': Type.Object(requested),
  'session.queued': Type.Object({}),
  'session.assigned': Assignment,
  'session.requeued': Type.Object({
    serverId: ServerId,
    detail: Type.String({ maxLength: 2048, description: 'for people; holds no secret' }),
  }),
  'session.activated': Type.Object({ workload: SessionWorkload, startedAt: Timestamp }),
  'session.extended': Type.Object({
    byMs: Type.Integer({ minimum: 0, description: 'milliseconds added to the expiry' }),
    expiresAt: Timestamp,
    creditsReserved: Type.Integer({
      minimum: 0,
      description: 'credits reserved for this extension',
    }),
    repeatable: Type.Optional(Repeatable),
  }),
  'session.accessed': Type.Object({
    via: Type.Union([Type.Literal('api'), Type.Literal('cdp'), Type.Literal('vnc')], {
      description: 'protocol or request of the access',
    }),
    at: Timestamp,
  }),
  'session.access-rotated': Type.Object({
    epoch: Type.Integer({
      minimum: 1,
      description: 'addresses of lower epochs are refused; those before the first rotation have 0',
    }),
    at: Timestamp,
  }),
  'session.expiry-warning': Type.Object({ expiresAt: Timestamp }),
  /** Fields that are absent stay as they are. */
  'session.updated': Type.Object({
    name: Type.Optional(requested.name),
    description: Type.Optional(requested.description),
    labels: Type.Optional(Labels),
  }),
  ...handoffEvents,
  ...shareEvents,
  ...egressEvents,
  ...recordingEvents,
  ...fileEvents,
  ...sessionProfileEvents,
  'session.stop-requested': Type.Object({
    reason: StopReason,
    at: Timestamp,
    note: Type.Optional(
      Type.String({ maxLength: 512, description: 'what the caller said about the reason' }),
    ),
  }),
  'session.stopped': Type.Object({
    reason: StopReason,
    endedAt: Timestamp,
    creditsUsed: Credits,
    creditsRefunded: Credits,
    egress: Type.Optional(EgressTotals),
    ...toldBefore,
  }),
  'session.failed': Type.Object({
    reason: FailureReason,
    detail: Type.String({ maxLength: 2048, description: 'for people; holds no secret' }),
    exitCode: ExitCode,
    endedAt: Timestamp,
    creditsUsed: Credits,
    creditsRefunded: Credits,
    egress: Type.Optional(EgressTotals),
    ...toldBefore,
  }),
  'session.carried-forward': CarriedForward,
};
export type SessionEvent = EventOf<typeof sessionEvents>;

const None = Type.Null();
const common = {
  id: Id,
  organizationId: Id,
  ...requested,
  lastAccessedAt: Type.Union([Timestamp, None]),
  /** Billing ends here; the caller does not pay for the browser's teardown. */
  stopRequestedAt: Type.Union([Timestamp, None]),
  /**
   * The expiry that the last warning was about; if it has moved since, there is another warning.
   */
  expiryWarnedFor: Type.Optional(Timestamp),
  /** The number of rotations of its addresses; absent: none, like 0. */
  accessEpoch: Type.Optional(Type.Integer({ minimum: 0 })),
  /** The last extensions that came with a key, and their results. */
  keyedExtensions: Type.Optional(
    Type.Array(
      Type.Object({ repeatable: Repeatable, status: Type.String(), expiresAt: Timestamp }),
      { maxItems: keyedExtensionsMax },
    ),
  ),
  /** The last hand-off; absent: there was none. */
  handoff: Type.Optional(Handoff),
  /** The shares that are not revoked; absent: none, like an empty list. */
  shares: Type.Optional(Type.Array(Share, { maxItems: sharesMax })),
  /** What the browser sent, received and was refused; absent: nothing was recorded. */
  egressTraffic: Type.Optional(EgressTraffic),
  /** How far its recording is; absent: nothing of it is stored. */
  recording: Type.Optional(Recording),
  /** The profile that it was requested with; absent: none. */
  profile: Type.Optional(SessionProfile),
  /** Servers that could not launch a browser for it and returned it. */
  triedServers: Type.Optional(Type.Array(Id)),
};
const notEnded = { endedReason: None, endedAt: None, creditsUsed: None };
const notStarted = { startedAt: None, workload: None };
const ended = {
  endedAt: Timestamp,
  creditsUsed: Credits,
  startedAt: Type.Union([Timestamp, None]),
  workload: Type.Union([SessionWorkload, None]),
  assignment: None,
};
const waiting = {
  ...common,
  ...notStarted,
  ...notEnded,
  assignment: Type.Union([Assignment, None]),
};

/** A session's state, carried in each of its events; discriminated by `status`. */
export const SessionState = Type.Union([
  Type.Object({ status: Type.Literal('creating'), ...waiting }),
  Type.Object({ status: Type.Literal('queued'), ...waiting }),
  Type.Object({
    status: Type.Literal('active'),
    ...common,
    ...notEnded,
    startedAt: Timestamp,
    workload: SessionWorkload,
    assignment: None,
  }),
  Type.Object({
    status: Type.Literal('stopping'),
    ...common,
    startedAt: Type.Union([Timestamp, None]),
    workload: Type.Union([SessionWorkload, None]),
    assignment: None,
    endedReason: StopReason,
    endedAt: None,
    creditsUsed: None,
  }),
  Type.Object({ status: Type.Literal('stopped'), ...common, ...ended, endedReason: StopReason }),
  Type.Object({ status: Type.Literal('failed'), ...common, ...ended, endedReason: FailureReason }),
]);
export type SessionState = Static<typeof SessionState>;

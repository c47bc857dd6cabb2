import { Type } from 'typebox';
import { Role } from '#events/organization.ts';
import { FailureReason, statuses, StopReason } from '#events/session.ts';
import { EgressAnswer } from './egress.ts';
import { answeredEmulation } from './emulation.ts';
import { Count, Nullable, Timestamp, Words } from './fields.ts';
import { ProfileOfSession } from './session-profile.ts';
import { Handoff } from './steering.ts';

/** Schemas of answers about sessions and the service; `examples` become the document's examples. */

const Status = Words(statuses, { title: 'SessionStatus', examples: ['active'] });
const Named = (examples: string[]) => Type.String({ examples });
const ENDED = { examples: [null], description: 'null until the session has ended' };
const wordsOf = ({ anyOf }: typeof StopReason | typeof FailureReason) =>
  anyOf.map((one) => one.const).join(', ');
const WHY_ENDED = {
  examples: [null],
  description:
    `null until the session has ended; stopped: ${wordsOf(StopReason)}; ` +
    `failed: ${wordsOf(FailureReason)}`,
};
const HEADLESS = { description: 'null if the session is headless' };
const SCREENLESS = { description: 'null if the session is headless, or has no browser yet' };

const EXAMPLE = {
  id: 'ses_J5mYt3QKX2m0bq1uHcR8Vw',
  name: 'checkout-test',
  created: '2026-11-20T09:30:00.000Z',
  started: '2026-11-20T09:30:00.041Z',
  accessed: '2026-11-20T09:31:07.512Z',
  expires: '2026-11-20T11:00:00.000Z',
  vncUrl: 'wss://browsers.example.com:8443/vnc/kq0Yw7c9TtW6x3nB2aPz1g/websockify',
  cdpUrl: 'ws://browsers.example.com:8081/devtools/browser/kq0Yw7c9TtW6x3nB2aPz1g',
  bidiUrl: 'ws://browsers.example.com:8081/devtools/bidi/kq0Yw7c9TtW6x3nB2aPz1g',
  password: 'v8Xq2LmP',
  viewerUrl: 'https://browsers.example.com:8443/vnc/kq0Yw7c9TtW6x3nB2aPz1g/#password=v8Xq2LmP',
};

export const SessionSummary = Type.Object(
  {
    id: Named([EXAMPLE.id]),
    session_name: Named([EXAMPLE.name]),
    status: Status,
    created_at: Timestamp(EXAMPLE.created),
    expires_at: Timestamp(EXAMPLE.expires),
    last_accessed_at: Nullable(Timestamp(EXAMPLE.accessed)),
  },
  { title: 'SessionSummary' },
);

const AccessUrls = Type.Object(
  {
    vnc_url: Nullable(Named([EXAMPLE.vncUrl])),
    cdp_url: Nullable(Named([EXAMPLE.cdpUrl])),
  },
  { title: 'AccessUrls', description: '`cdp_url` and `vnc_url`, repeated' },
);

export const Session = Type.Object(
  {
    id: Named([EXAMPLE.id]),
    session_name: Named([EXAMPLE.name]),
    description: Named(['Buys one of everything']),
    status: Status,
    user_id: Named(['ada']),
    organization_id: Named(['acme']),
    organization_role: Words(
      Role.anyOf.map((role) => role.const),
      { description: 'role of the caller', examples: ['member'] },
    ),
    created_at: Timestamp(EXAMPLE.created),
    started_at: Nullable(Timestamp(EXAMPLE.started), {
      description: 'null until the session has a browser',
    }),
    last_accessed_at: Nullable(Timestamp(EXAMPLE.accessed)),
    expires_at: Timestamp(EXAMPLE.expires),
    ended_at: Nullable(Timestamp(EXAMPLE.expires), ENDED),
    ended_reason: Nullable(Named(['expired']), WHY_ENDED),
    vnc_url: Nullable(Named([EXAMPLE.vncUrl]), {
      description:
        'VNC over WebSocket; null if the session is ending or headless, or the caller is a viewer',
    }),
    cdp_url: Nullable(Named([EXAMPLE.cdpUrl]), {
      description: 'for connectOverCDP; null if the session is ending, or the caller is a viewer',
    }),
    bidi_url: Nullable(Named([EXAMPLE.bidiUrl]), {
      description: 'WebDriver BiDi over WebSocket; null where cdp_url is',
    }),
    vnc_password: Nullable(Named([EXAMPLE.password]), {
      description: 'a secret; null without a browser that has a screen',
    }),
    viewer_url: Nullable(Named([EXAMPLE.viewerUrl]), {
      description: 'a page that shows the screen; the address contains the password',
    }),
    access_urls: AccessUrls,
    autoscaler_workload_id: Nullable(Named(['wl_q3Zc8mYB0t1uK5nXw7Rd2A'])),
    autoscaler_server_id: Nullable(Named(['srv_Xb4n9T6kLw0yPq2mVz8sHg'])),
    autoscaler_server_ip: Nullable(Named(['10.0.3.17'])),
    labels: Type.Record(Type.String(), Type.String(), { examples: [{ team: 'web' }] }),
    idle_timeout: Nullable(Type.String(), { examples: [null] }),
    viewport: Nullable(Type.Object({ width: Type.Integer(), height: Type.Integer() }), {
      examples: [null],
    }),
    locale: Nullable(Type.String(), { examples: [null] }),
    timezone: Nullable(Type.String(), { examples: [null] }),
    headless: Type.Boolean({ description: 'true: the browser has no screen', examples: [false] }),
    extensions: Type.Array(Type.String(), {
      description: 'ids of the extensions that its browser has',
      examples: [[]],
    }),
    egress: Nullable(EgressAnswer, {
      examples: [null],
      description: 'what its browser may connect to; null: everything but private networks',
    }),
    record: Type.Boolean({ description: 'true: its screen is recorded', examples: [false] }),
    ...answeredEmulation,
    credits_reserved: Type.Integer({ description: 'one credit is one minute', examples: [90] }),
    credits_used: Nullable(Type.Integer(), ENDED),
    profile: Nullable(ProfileOfSession, {
      examples: [null],
      description: 'null: it was created without one',
    }),
    handoff: Nullable(Handoff, { examples: [null], description: 'the last one; null: none' }),
    queue_position: Type.Optional(
      Type.Integer({
        minimum: 1,
        examples: [],
        description:
          'set until a server has accepted the request: its place by arrival; requests of other ' +
          'organizations may be served before',
      }),
    ),
    estimated_wait_seconds: Type.Optional(
      Nullable(Type.Integer({ minimum: 0 }), {
        examples: [],
        description: 'estimated from the last minutes; null if no session got a browser then',
      }),
    ),
  },
  { title: 'Session' },
);

export const SessionList = Type.Object(
  {
    sessions: Type.Array(SessionSummary),
    total: Count(1),
    pagination: Type.Object({ limit: Count(20), offset: Count(0) }),
    complete_from: Type.Optional(
      Timestamp(
        '2026-10-21T00:00:00.000Z',
        'sessions that ended before this time are archived: each can be read by its id, and none ' +
          'is in a list. Absent if none are archived',
      ),
    ),
  },
  { title: 'SessionList' },
);

export const SessionAccess = Type.Object(
  {
    session_id: Named([EXAMPLE.id]),
    status: Status,
    vnc_url: Nullable(Named([EXAMPLE.vncUrl]), HEADLESS),
    vnc_password: Nullable(Named([EXAMPLE.password]), SCREENLESS),
    cdp_url: Named([EXAMPLE.cdpUrl]),
    bidi_url: Named([EXAMPLE.bidiUrl]),
    viewer_url: Nullable(Named([EXAMPLE.viewerUrl]), SCREENLESS),
    access_urls: AccessUrls,
    expires_at: Timestamp(EXAMPLE.expires),
  },
  { title: 'SessionAccess' },
);

export const SessionExtended = Type.Object(
  {
    id: Named([EXAMPLE.id]),
    session_name: Named([EXAMPLE.name]),
    status: Status,
    expires_at: Timestamp('2026-11-20T12:30:00.000Z'),
    message: Named(['Session extended by 1h30m.']),
  },
  { title: 'SessionExtended' },
);

export const SessionStopped = Type.Object(
  {
    message: Named([`Session ${EXAMPLE.name} has been stopped.`]),
    session_id: Named([EXAMPLE.id]),
  },
  { title: 'SessionStopped' },
);

const healthWords = ['healthy', 'degraded', 'unhealthy'] as const;
const HealthWord = Words(healthWords, { title: 'HealthWord', examples: ['healthy'] });

export const poolCounters = [
  'total',
  'idle',
  'busy',
  'provisioning',
  'launching',
  'terminating',
] as const;
const POOL_EXAMPLE = { total: 4, idle: 1, busy: 3, provisioning: 0, launching: 0, terminating: 0 };

export const ServiceStatus = Type.Object(
  {
    autoscaler: Type.Object({
      status: HealthWord,
      pool_status: Type.Object(
        Object.fromEntries(poolCounters.map((name) => [name, Count(POOL_EXAMPLE[name])])),
        { description: 'all browsers of the service, by state' },
      ),
    }),
    current_load: Type.Object({
      active_sessions: Count(3),
      organization_id: Named(['acme']),
    }),
    timestamp: Timestamp(EXAMPLE.accessed),
  },
  { title: 'ServiceStatus' },
);

export const Health = Type.Object(
  {
    status: HealthWord,
    service: Named(['browser-session-service']),
    version: Named(['1.0.0']),
    timestamp: Timestamp(EXAMPLE.accessed),
    dependencies: Type.Object({
      database: HealthWord,
      autoscaler: HealthWord,
      rate_limit: Words(healthWords, {
        description: 'degraded while each API process limits requests on its own',
        examples: ['healthy'],
      }),
      object_store: Words(healthWords, {
        description: 'degraded while it is nearly full: at 90 % only profiles are stored',
        examples: ['healthy'],
      }),
    }),
  },
  { title: 'Health' },
);

export const Readiness = Type.Object(
  // Not the constant true: the Java generator writes code for it that does not compile.
  {
    ready: Type.Boolean({ description: 'always true', examples: [true] }),
    reader_silence_seconds: Type.Record(Type.String(), Type.Number({ minimum: 0 }), {
      description:
        'how long each reader of this process has been without a sign of life from NATS, by ' +
        'stream, or stream/consumer',
      examples: [{ EVENTS: 0.4 }],
    }),
  },
  { title: 'Readiness' },
);

export const Problem = Type.Object(
  {
    error: Type.String({ description: 'machine-readable name' }),
    message: Type.String({ description: 'a sentence for people' }),
    code: Type.Integer({ description: 'the HTTP status' }),
    context: Type.Record(Type.String(), Type.Unknown(), {
      description: 'details of the failing input or resource',
    }),
  },
  { title: 'Problem' },
);

import { OBJECTS_STREAM } from '#events/object-subjects.ts';
import {
  ADVISORY_STREAM,
  DELIVERIES_STREAM,
  EVENTS_STREAM,
  DEAD_LETTERS_STREAM,
  PUBLIC_STREAM,
  TIMERS_STREAM,
  WEBHOOKS_STREAM,
} from '#events/subjects.ts';
import { errors } from '#src/kernel/errors.ts';

/**
 * Which processes export a metric: those with a role, or all. `service` metrics describe the whole
 * service and are exported by each process with the API: take their maximum, never their sum.
 */
export type FamilyOwner =
  | 'service'
  | 'api'
  | 'gateway'
  | 'provisioner'
  | 'projector'
  | 'webhooks'
  | 'process';

/** A metric; `deploy/metrics.md` explains what a change of it means. */
export type Family = {
  kind: 'counter' | 'gauge' | 'histogram';
  of: readonly FamilyOwner[];
  help: string;
  /** At most one label, and its values; a description if they depend on the configuration. */
  label?: { name: string; values: readonly string[] | string };
  /** Upper bounds of a histogram's buckets, in seconds. */
  buckets?: readonly number[];
};

/** From one append (2 ms) to a launch on a busy machine (15 s). */
const PHASE_SECONDS = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 15];
/** A page that changes nothing takes 10 ms; a browser that has no picture is given up after 3 s. */
const SCREENSHOT_SECONDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 3];
const LAUNCH_SECONDS = [0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30];

export const createPhases = ['admission', 'append', 'placement', 'launch', 'first_cdp'] as const;
export type CreatePhase = (typeof createPhases)[number];
const kinds = ['cdp', 'vnc'] as const;
const streams = [
  EVENTS_STREAM,
  PUBLIC_STREAM,
  TIMERS_STREAM,
  ADVISORY_STREAM,
  DEAD_LETTERS_STREAM,
  OBJECTS_STREAM,
  WEBHOOKS_STREAM,
  DELIVERIES_STREAM,
];
const statuses = [...new Set(Object.values(errors).map(({ status }) => `${status}`))];

/** All metrics of the service, by name. */
export const families = {
  bss_pool_size: {
    kind: 'gauge',
    of: ['service'],
    help: 'Browsers of all servers, in every state.',
  },
  bss_pool_browsers: {
    kind: 'gauge',
    of: ['service'],
    help: 'Browsers of all servers by state; the sum is bss_pool_size.',
    label: { name: 'state', values: ['idle', 'busy', 'provisioning', 'launching', 'terminating'] },
  },
  bss_queue_length: {
    kind: 'gauge',
    of: ['service'],
    help: 'Requests for a session that no server has accepted yet.',
  },
  bss_queue_oldest_age_seconds: {
    kind: 'gauge',
    of: ['service'],
    help:
      'Age of the oldest request for a session that no server has accepted yet; 0 if there ' +
      'is none.',
  },
  bss_leaked_browsers: {
    kind: 'gauge',
    of: ['service'],
    help:
      'Browsers that run without a session or a place in the pool, at each server’s last ' +
      'reconciliation with the event store.',
  },
  bss_leaked_sessions: {
    kind: 'gauge',
    of: ['service'],
    help:
      'Sessions assigned to a server that has no browser for them, at each server’s last ' +
      'reconciliation with the event store.',
  },
  bss_overdue_sessions: {
    kind: 'gauge',
    of: ['service'],
    help:
      'Sessions that their expiry, idle timeout or queue timeout should have ended more than a ' +
      'minute ago, counted at most every 30 s.',
  },
  bss_dead_letters: {
    kind: 'gauge',
    of: ['service'],
    help:
      'Dead letters: events that a projection or a work queue could not handle and ' +
      'skipped, until an operator retries or skips them.',
    label: { name: 'kind', values: ['projection', 'work_queue'] },
  },
  bss_part_reachable: {
    kind: 'gauge',
    of: ['service'],
    help: '1 if this process reaches the part, else 0.',
    label: { name: 'part', values: ['event_log', 'read_model'] },
  },
  bss_stream_bytes: {
    kind: 'gauge',
    of: ['service'],
    help:
      'Size of the event store’s streams, of one replica; a stream that does not exist is ' +
      'left out.',
    label: { name: 'stream', values: streams },
  },
  bss_stream_messages: {
    kind: 'gauge',
    of: ['service'],
    help: 'Messages in the event store’s streams.',
    label: { name: 'stream', values: streams },
  },
  bss_stream_subjects: {
    kind: 'gauge',
    of: ['service'],
    help: 'Distinct subjects in the event store’s streams.',
    label: { name: 'stream', values: streams },
  },
  bss_archive_lag_seconds: {
    kind: 'gauge',
    of: ['service'],
    help:
      'How much longer than RETAIN_ENDED the oldest event has been in the event store; 0 if not ' +
      'longer, NaN if RETAIN_ENDED is forever.',
  },
  bss_archive_bytes: {
    kind: 'gauge',
    of: ['service'],
    help: 'Size of the archive’s compressed events, read at most every 5 min.',
  },
  bss_archive_events: {
    kind: 'gauge',
    of: ['service'],
    help: 'Events in the archive, read at most every 5 min.',
  },
  bss_object_store_used_share: {
    kind: 'gauge',
    of: ['service'],
    help: 'Share of the object store’s greatest size that is used; NaN where it has none (S3).',
  },
  bss_redis_memory_bytes: {
    kind: 'gauge',
    of: ['service'],
    help: 'Memory that Redis uses.',
  },
  bss_redis_memory_max_bytes: {
    kind: 'gauge',
    of: ['service'],
    help: 'Memory that Redis may use (maxmemory); 0: it has no limit.',
  },
  bss_create_phase_seconds: {
    kind: 'histogram',
    of: ['api', 'gateway'],
    help:
      'Duration of the phases of a session’s creation: admission (the request is ' +
      'admitted), append (its events are stored), placement (a server has accepted it), ' +
      'launch (a browser is launched, if none was idle), first_cdp (at the gateway, from ' +
      'the session’s first CDP handshake to the browser’s answer).',
    label: { name: 'phase', values: createPhases },
    buckets: PHASE_SECONDS,
  },
  bss_refusals_total: {
    kind: 'counter',
    of: ['api'],
    help: 'Requests answered with an error, by the name of the error.',
    label: { name: 'error', values: Object.keys(errors) },
  },
  bss_session_starts_total: {
    kind: 'counter',
    of: ['provisioner'],
    help:
      'Sessions that got a browser of this server: an idle one (warm), or one launched for ' +
      'the session (cold).',
    label: { name: 'start', values: ['warm', 'cold'] },
  },
  bss_browser_launch_seconds: {
    kind: 'histogram',
    of: ['provisioner'],
    help:
      'Duration of this server’s launches, until the browser answers CDP or the launch has ' +
      'failed.',
    label: { name: 'outcome', values: ['launched', 'failed'] },
    buckets: LAUNCH_SECONDS,
  },
  bss_screenshot_seconds: {
    kind: 'histogram',
    of: ['provisioner'],
    help:
      'Duration of this server’s screenshots, until the browser has made the picture or is given ' +
      'up.',
    label: { name: 'outcome', values: ['made', 'failed'] },
    buckets: SCREENSHOT_SECONDS,
  },
  bss_browser_age_seconds: {
    kind: 'gauge',
    of: ['provisioner'],
    help:
      'Age of what this server launches new browsers from: since the packages of its image were ' +
      'installed, or since its program was built. Not exported for simulated browsers.',
    label: { name: 'version', values: 'Chromium’s version' },
  },
  bss_server_leaked_browsers: {
    kind: 'gauge',
    of: ['provisioner'],
    help:
      'Browsers of this server without a session or a place in the pool, at its last ' +
      'reconciliation with the event store.',
  },
  bss_server_leaked_sessions: {
    kind: 'gauge',
    of: ['provisioner'],
    help:
      'Sessions of this server without a browser, at its last reconciliation with the ' +
      'event store.',
  },
  bss_gateway_open_connections: {
    kind: 'gauge',
    of: ['gateway'],
    help: 'Open WebSocket connections to browsers through this gateway.',
    label: { name: 'kind', values: kinds },
  },
  bss_gateway_connections_total: {
    kind: 'counter',
    of: ['gateway'],
    help: 'WebSocket connections to browsers that this gateway has opened.',
    label: { name: 'kind', values: kinds },
  },
  bss_gateway_bytes_total: {
    kind: 'counter',
    of: ['gateway'],
    help:
      'Bytes received from clients (in) and sent to clients (out) over all connections to ' +
      'browsers.',
    label: { name: 'direction', values: ['in', 'out'] },
  },
  bss_gateway_refusals_total: {
    kind: 'counter',
    of: ['gateway'],
    help: 'Requests and handshakes that this gateway has refused, by HTTP status.',
    label: { name: 'status', values: statuses },
  },
  bss_gateway_webdriver_commands_total: {
    kind: 'counter',
    of: ['gateway'],
    help: 'Commands of WebDriver that this gateway has passed to a driver, by their outcome.',
    label: { name: 'outcome', values: ['ok', 'error', 'unanswered'] },
  },
  bss_projection_lag_events: {
    kind: 'gauge',
    of: ['projector'],
    help: 'Upper bound of the number of events that the projection is behind the event store.',
    label: { name: 'projection', values: 'name and version of each read model' },
  },
  bss_projection_lag_seconds: {
    kind: 'gauge',
    of: ['projector'],
    help: 'How long the projection has been behind the event store; 0 if it has folded all events.',
    label: { name: 'projection', values: 'name and version of each read model' },
  },
  bss_webhook_deliveries_total: {
    kind: 'counter',
    of: ['webhooks'],
    help:
      'Attempts at deliveries to webhooks by what they came to; gone: answered 410; lost: the ' +
      'event could not be read any more.',
    label: { name: 'outcome', values: ['delivered', 'failed', 'gone', 'lost'] },
  },
  bss_webhook_lag_seconds: {
    kind: 'gauge',
    of: ['webhooks'],
    help:
      'Age of the oldest event that is not delivered to a webhook of this process which is not ' +
      'disabled; 0 if there is none.',
  },
  bss_webhooks_failing: {
    kind: 'gauge',
    of: ['webhooks'],
    help: 'Webhooks of this process whose last attempt at some event failed.',
  },
  bss_webhooks_disabled: {
    kind: 'gauge',
    of: ['webhooks'],
    help: 'Webhooks of this process that are disabled.',
  },
  bss_reader_silence_seconds: {
    kind: 'gauge',
    of: ['process'],
    help:
      'Time since the last sign of life of each reader of this process: a message, a heartbeat ' +
      'of the server, or the answer to a pull.',
    label: { name: 'reader', values: 'stream, or stream/consumer' },
  },
  bss_archive_faults_total: {
    kind: 'counter',
    of: ['process'],
    help:
      'Reads of the archive that were refused, because a file is missing or is not what was ' +
      'sealed.',
  },
  bss_event_loop_delay_seconds: {
    kind: 'gauge',
    of: ['process'],
    help: 'Delay of this process’ event loop since the metrics were last read.',
    label: { name: 'stat', values: ['mean', 'p99', 'max'] },
  },
  bss_certificate_left_seconds: {
    kind: 'gauge',
    of: ['process'],
    help:
      'Time until the end of each certificate that this process uses or is shown, read at most ' +
      'every 5 min; NaN: it cannot be read.',
    label: {
      name: 'certificate',
      values: 'tls, gateway, nats_ca, nats_client, nats_server, and the same of redis, if used',
    },
  },
  bss_process_info: {
    kind: 'gauge',
    of: ['process'],
    help: 'Always 1; the label has the roles of this process.',
    label: { name: 'roles', values: 'the variable ROLES, in full' },
  },
} as const satisfies Record<string, Family>;

export type FamilyName = keyof typeof families;

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
    help: 'Browsers of all servers.',
  },
  bss_pool_browsers: {
    kind: 'gauge',
    of: ['service'],
    help: 'Browsers of all servers by state.',
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
    help: 'Age of the oldest request in bss_queue_length; 0 if there is none.',
  },
  bss_leaked_browsers: {
    kind: 'gauge',
    of: ['service'],
    help:
      'Browsers without a session or a place in the pool, at each server’s last ' +
      'reconciliation.',
  },
  bss_leaked_sessions: {
    kind: 'gauge',
    of: ['service'],
    help: 'Sessions whose server has no browser for them, at each server’s last reconciliation.',
  },
  bss_overdue_sessions: {
    kind: 'gauge',
    of: ['service'],
    help:
      'Sessions more than a minute past their expiry, idle timeout or queue timeout, counted ' +
      'at most every 30 s.',
  },
  bss_dead_letters: {
    kind: 'gauge',
    of: ['service'],
    help:
      'Events that a projection or a work queue could not handle, until an operator retries or ' +
      'skips them.',
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
    help: 'Size of one replica of each stream that exists.',
    label: { name: 'stream', values: streams },
  },
  bss_stream_messages: {
    kind: 'gauge',
    of: ['service'],
    help: 'Messages in each stream.',
    label: { name: 'stream', values: streams },
  },
  bss_stream_subjects: {
    kind: 'gauge',
    of: ['service'],
    help: 'Distinct subjects in each stream.',
    label: { name: 'stream', values: streams },
  },
  bss_archive_lag_seconds: {
    kind: 'gauge',
    of: ['service'],
    help:
      'How far the oldest event in the event store is past RETAIN_ENDED; NaN if that is ' +
      'forever.',
  },
  bss_archive_bytes: {
    kind: 'gauge',
    of: ['service'],
    help: 'Size of the archive’s compressed events, read at most every 5 min.',
  },
  bss_archive_events: {
    kind: 'gauge',
    of: ['service'],
    help: 'Events in the archive.',
  },
  bss_object_store_used_share: {
    kind: 'gauge',
    of: ['service'],
    help: 'Used share of the object store’s maximum size; NaN for S3, which has none.',
  },
  bss_redis_memory_bytes: {
    kind: 'gauge',
    of: ['service'],
    help: 'Memory that Redis uses.',
  },
  bss_redis_memory_max_bytes: {
    kind: 'gauge',
    of: ['service'],
    help: 'Memory that Redis may use (maxmemory); 0: no limit.',
  },
  bss_create_phase_seconds: {
    kind: 'histogram',
    of: ['api', 'gateway'],
    help:
      'Duration of a session’s creation by phase; launch only if no browser was idle, ' +
      'first_cdp from the first CDP handshake at the gateway to the browser’s answer.',
    label: { name: 'phase', values: createPhases },
    buckets: PHASE_SECONDS,
  },
  bss_refusals_total: {
    kind: 'counter',
    of: ['api'],
    help: 'Requests answered with an error, by its name.',
    label: { name: 'error', values: Object.keys(errors) },
  },
  bss_session_starts_total: {
    kind: 'counter',
    of: ['provisioner'],
    help: 'Sessions that got an idle browser (warm) or one launched for them (cold).',
    label: { name: 'start', values: ['warm', 'cold'] },
  },
  bss_browser_launch_seconds: {
    kind: 'histogram',
    of: ['provisioner'],
    help: 'Duration of launches, until the browser answers CDP or the launch fails.',
    label: { name: 'outcome', values: ['launched', 'failed'] },
    buckets: LAUNCH_SECONDS,
  },
  bss_screenshot_seconds: {
    kind: 'histogram',
    of: ['provisioner'],
    help: 'Duration of screenshots, until the picture is made or given up.',
    label: { name: 'outcome', values: ['made', 'failed'] },
    buckets: SCREENSHOT_SECONDS,
  },
  bss_browser_age_seconds: {
    kind: 'gauge',
    of: ['provisioner'],
    help:
      'Time since the packages of the browsers’ image were installed, or their program was ' +
      'built; not exported for simulated browsers.',
    label: { name: 'version', values: 'Chromium’s version' },
  },
  bss_server_leaked_browsers: {
    kind: 'gauge',
    of: ['provisioner'],
    help: 'bss_leaked_browsers of this server.',
  },
  bss_server_leaked_sessions: {
    kind: 'gauge',
    of: ['provisioner'],
    help: 'bss_leaked_sessions of this server.',
  },
  bss_gateway_open_connections: {
    kind: 'gauge',
    of: ['gateway'],
    help: 'Open WebSocket connections to browsers.',
    label: { name: 'kind', values: kinds },
  },
  bss_gateway_connections_total: {
    kind: 'counter',
    of: ['gateway'],
    help: 'WebSocket connections to browsers that were opened.',
    label: { name: 'kind', values: kinds },
  },
  bss_gateway_bytes_total: {
    kind: 'counter',
    of: ['gateway'],
    help: 'Bytes from clients (in) and to clients (out) over connections to browsers.',
    label: { name: 'direction', values: ['in', 'out'] },
  },
  bss_gateway_refusals_total: {
    kind: 'counter',
    of: ['gateway'],
    help: 'Refused requests and handshakes, by HTTP status.',
    label: { name: 'status', values: statuses },
  },
  bss_gateway_webdriver_commands_total: {
    kind: 'counter',
    of: ['gateway'],
    help: 'WebDriver commands passed to a driver, by outcome.',
    label: { name: 'outcome', values: ['ok', 'error', 'unanswered'] },
  },
  bss_projection_lag_events: {
    kind: 'gauge',
    of: ['projector'],
    help: 'Upper bound of the events that the projection is behind the event store.',
    label: { name: 'projection', values: 'name and version' },
  },
  bss_projection_lag_seconds: {
    kind: 'gauge',
    of: ['projector'],
    help: 'How long the projection has been behind the event store; 0 if it is not.',
    label: { name: 'projection', values: 'name and version' },
  },
  bss_webhook_deliveries_total: {
    kind: 'counter',
    of: ['webhooks'],
    help:
      'Attempted deliveries to webhooks by outcome; gone: answered 410; lost: the event could ' +
      'not be read.',
    label: { name: 'outcome', values: ['delivered', 'failed', 'gone', 'lost'] },
  },
  bss_webhook_lag_seconds: {
    kind: 'gauge',
    of: ['webhooks'],
    help: 'Age of the oldest event that an enabled webhook has not received; 0 if there is none.',
  },
  bss_webhooks_failing: {
    kind: 'gauge',
    of: ['webhooks'],
    help: 'Webhooks whose last attempt at some event failed.',
  },
  bss_webhooks_disabled: {
    kind: 'gauge',
    of: ['webhooks'],
    help: 'Disabled webhooks.',
  },
  bss_reader_silence_seconds: {
    kind: 'gauge',
    of: ['process'],
    help: 'Time since each reader got a message, a heartbeat or the answer to a pull.',
    label: { name: 'reader', values: 'stream, or stream/consumer' },
  },
  bss_archive_faults_total: {
    kind: 'counter',
    of: ['process'],
    help: 'Refused reads of the archive: a file is missing or is not what was sealed.',
  },
  bss_event_loop_delay_seconds: {
    kind: 'gauge',
    of: ['process'],
    help: 'Delay of the event loop since the metrics were last read.',
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
      values:
        'tls, gateway, nats_ca, nats_client, nats_server, redis_ca, redis_client, redis_server',
    },
  },
  bss_process_info: {
    kind: 'gauge',
    of: ['process'],
    help: 'Always 1.',
    label: { name: 'roles', values: 'ROLES in full' },
  },
} as const satisfies Record<string, Family>;

export type FamilyName = keyof typeof families;

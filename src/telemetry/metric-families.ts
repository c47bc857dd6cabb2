import { errors } from '#src/errors.ts';

/**
 * Which processes export a metric: those with a role, or all. `service` metrics describe the whole
 * service and are exported by each process with the API: take their maximum, never their sum.
 */
export type FamilyOwner = 'service' | 'api' | 'gateway' | 'provisioner' | 'projector' | 'process';

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
const LAUNCH_SECONDS = [0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30];

export const createPhases = ['admission', 'append', 'placement', 'launch', 'first_cdp'] as const;
export type CreatePhase = (typeof createPhases)[number];
const kinds = ['cdp', 'vnc'] as const;
const statuses = [...new Set(Object.values(errors).map(({ status }) => `${status}`))];

/** All metrics of the service, by name. */
export const families = {
  bss_pool_size: {
    kind: 'gauge',
    of: ['service'],
    help: 'Browsers of all servers, whatever they do.',
  },
  bss_pool_browsers: {
    kind: 'gauge',
    of: ['service'],
    help: 'Browsers of all servers by what they do; together bss_pool_size.',
    label: { name: 'state', values: ['idle', 'busy', 'provisioning', 'launching', 'terminating'] },
  },
  bss_queue_length: {
    kind: 'gauge',
    of: ['service'],
    help: 'Requests for a session that no server has taken yet.',
  },
  bss_queue_oldest_age_seconds: {
    kind: 'gauge',
    of: ['service'],
    help: 'How long the longest waiting of them has waited; 0 where none waits.',
  },
  bss_leaked_browsers: {
    kind: 'gauge',
    of: ['service'],
    help:
      'Browsers that run without a session or a place in the pool, at the servers’ last ' +
      'comparisons with the log.',
  },
  bss_leaked_sessions: {
    kind: 'gauge',
    of: ['service'],
    help:
      'Sessions that have a server but no browser there, at the servers’ last comparisons ' +
      'with the log.',
  },
  bss_parked_events: {
    kind: 'gauge',
    of: ['service'],
    help:
      'Events that somebody could make nothing of and passed over, until an operator decides: ' +
      'by projections, or by work queues (inbox).',
    label: { name: 'kind', values: ['projection', 'inbox'] },
  },
  bss_part_reachable: {
    kind: 'gauge',
    of: ['service'],
    help: '1 while this process reaches the part, else 0.',
    label: { name: 'part', values: ['event_log', 'read_model'] },
  },
  bss_create_phase_seconds: {
    kind: 'histogram',
    of: ['api', 'gateway'],
    help:
      'How long the phases of a create take: until the request is admitted, its events are ' +
      'stored, a server has taken it, a browser is launched where none waited, and ' +
      '(first_cdp, at the gateway) from a session’s first CDP handshake to the browser’s ' +
      'answer.',
    label: { name: 'phase', values: createPhases },
    buckets: PHASE_SECONDS,
  },
  bss_refusals_total: {
    kind: 'counter',
    of: ['api'],
    help: 'Requests refused, by the name of the error.',
    label: { name: 'error', values: Object.keys(errors) },
  },
  bss_session_starts_total: {
    kind: 'counter',
    of: ['provisioner'],
    help:
      'Sessions that got a browser of this server: one that waited (warm), or one launched ' +
      'for them (cold).',
    label: { name: 'start', values: ['warm', 'cold'] },
  },
  bss_browser_launch_seconds: {
    kind: 'histogram',
    of: ['provisioner'],
    help:
      'How long this server’s launches take until the browser answers CDP, or until they have ' +
      'failed.',
    label: { name: 'outcome', values: ['launched', 'failed'] },
    buckets: LAUNCH_SECONDS,
  },
  bss_server_leaked_browsers: {
    kind: 'gauge',
    of: ['provisioner'],
    help:
      'Of this server: browsers without a session or a place in the pool, at its last ' +
      'comparison with the log.',
  },
  bss_server_leaked_sessions: {
    kind: 'gauge',
    of: ['provisioner'],
    help: 'Of this server: sessions without a browser, at its last comparison with the log.',
  },
  bss_gateway_open_connections: {
    kind: 'gauge',
    of: ['gateway'],
    help: 'Sockets to browsers that are open through this gateway.',
    label: { name: 'kind', values: kinds },
  },
  bss_gateway_connections_total: {
    kind: 'counter',
    of: ['gateway'],
    help: 'Sockets to browsers that this gateway has joined.',
    label: { name: 'kind', values: kinds },
  },
  bss_gateway_bytes_total: {
    kind: 'counter',
    of: ['gateway'],
    help: 'Bytes from clients (in) and to them (out), over all sockets.',
    label: { name: 'direction', values: ['in', 'out'] },
  },
  bss_gateway_refusals_total: {
    kind: 'counter',
    of: ['gateway'],
    help: 'Requests and handshakes that this gateway has refused, by HTTP status.',
    label: { name: 'status', values: statuses },
  },
  bss_projection_lag_events: {
    kind: 'gauge',
    of: ['projector'],
    help: 'How many events the projection is behind the log, at most.',
    label: { name: 'projection', values: 'name and version of each read model' },
  },
  bss_projection_lag_seconds: {
    kind: 'gauge',
    of: ['projector'],
    help:
      'Since when there is something in the log that the projection has not folded; 0 where ' +
      'it has all.',
    label: { name: 'projection', values: 'name and version of each read model' },
  },
  bss_event_loop_delay_seconds: {
    kind: 'gauge',
    of: ['process'],
    help: 'How late this process’ timers ran since the last time it was asked.',
    label: { name: 'stat', values: ['mean', 'p99', 'max'] },
  },
  bss_process_info: {
    kind: 'gauge',
    of: ['process'],
    help: '1, for the roles that this process has.',
    label: { name: 'roles', values: 'the variable ROLES, in full' },
  },
} as const satisfies Record<string, Family>;

export type FamilyName = keyof typeof families;

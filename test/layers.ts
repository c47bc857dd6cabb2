import type { SourceFile } from './support/source-files.ts';

/** Who may import whom: the one table of the architecture that a test holds (tidy.test.ts). */

/** What any file may import but those of the contract. */
const common = [
  'src/errors.ts',
  'src/ids.ts',
  'src/moment.ts',
  'src/master-keys.ts',
  'src/foreign',
  'src/optional-package.ts',
  'package.json',
];
/** Reading and writing the log, above the stores: what each role builds on. */
const core = [
  'events',
  'src/domain',
  'src/async',
  'src/http',
  'src/host',
  'src/event-store',
  'src/messaging',
  'src/objects',
  'src/extensions',
  'src/commands',
  'src/billing',
  'projections',
  'src/telemetry',
  ...common,
];

/** Each layer's folder or file, and the folders and files it may import beside its own. */
export const layers: Readonly<Record<string, readonly string[]>> = {
  events: [],
  'src/errors.ts': [],
  'src/ids.ts': [],
  'src/moment.ts': [],
  'src/master-keys.ts': [],
  'src/optional-package.ts': ['package.json'],
  'src/foreign': [],
  'src/domain': ['events', ...common],
  'src/async': [...common],
  'src/http': ['src/async', ...common],
  // What this process may have of its machine, and where it is reached.
  'src/host': ['src/domain', ...common],
  // The client of buckets, for archive and objects.
  'src/s3': [...common],
  'src/telemetry': ['events', 'src/async', 'src/http', ...common],
  'src/event-store': ['events', 'src/domain', 'src/async', 'src/telemetry', ...common],
  'src/messaging': [
    'events',
    'src/domain',
    'src/async',
    'src/event-store',
    'src/telemetry',
    ...common,
  ],
  // What an uploaded extension has to be, for the API and for servers of browsers.
  'src/extensions': ['src/async', ...common],
  // Files, profiles, recordings and what else is stored as it is, beside the events.
  'src/objects': ['events', 'src/async', 'src/event-store', 'src/s3', ...common],
  // The archives of profiles, for the role that stores them and the one that removes them.
  'src/profiles': ['events', 'src/objects', 'src/async', ...common],
  'src/commands': [
    'events',
    'projections',
    'src/domain',
    'src/async',
    'src/event-store',
    'src/messaging',
    'src/telemetry',
    ...common,
  ],
  // What a session's events say: for the API and the command line.
  'src/history': ['events', 'src/domain', 'src/event-store', ...common],
  // The format of recordings: who writes, serves, plays and checks them.
  'src/recordings': ['events', 'src/async', 'src/event-store', 'src/objects', ...common],
  'src/audit': ['events', 'src/event-store', 'src/archive', ...common],
  'src/billing': ['events', 'src/domain', 'src/event-store', ...common],
  projections: [
    'events',
    'src/async',
    'src/event-store/event-store.ts',
    'src/event-store/load-state.ts',
    'src/event-store/unreadable.ts',
    'src/messaging/work-queue.ts',
    'src/messaging/timers.ts',
    'src/messaging/leases.ts',
    'src/messaging/dead-letters.ts',
    ...common,
    'src/telemetry',
  ],
  // What operators see and decide: the command line and the API have the same.
  'src/operator': [
    'events',
    'projections',
    'src/domain',
    'src/event-store',
    'src/messaging',
    'src/commands',
    'src/billing',
    'src/archive',
    ...common,
  ],
  // What the API and the role that sends have in common of webhooks.
  'src/webhooks': ['events', 'src/domain', 'src/async', 'src/host', 'src/event-store', ...common],
  // How a browser's sockets are reached, and the client of CDP, for the roles that reach them.
  'src/browser-link': [...common],
  // The roles: none imports another.
  'src/api': [
    ...core,
    'src/history',
    'src/browser-link',
    'src/audit',
    'src/operator',
    'src/recordings',
    'src/profiles',
    'src/webhooks',
    'src/dashboard/pages.ts',
  ],
  'src/provisioner': [...core, 'src/browser-link', 'src/recordings', 'src/profiles'],
  'src/timekeeper': core,
  'src/gateway': [...core, 'src/browser-link'],
  'src/feed': core,
  'src/tenants': core,
  'src/archivist': [...core, 'src/archive'],
  'src/webhook-sender': [...core, 'src/webhooks'],
  // It runs in a browser: of the service it has types, and the sentences about events.
  'src/dashboard': [
    'events/session.ts',
    'events/cloud-event.ts',
    'events/events.ts',
    'events/pool.ts',
    'src/history/describe-actor.ts',
    'src/history/describe-event.ts',
    'src/recordings/replay.ts',
    'src/recordings/segment-format.ts',
  ],
  // What its users have: types of the service alone, which leave nothing behind.
  'src/client': ['events', 'src/api/schemas', 'src/errors.ts'],
  'src/config': ['events', 'src/domain', ...common],
  'src/embedded': ['events', 'src/async', 'src/config', ...common, 'src/telemetry'],
  'src/backup': ['events', 'src/event-store', 'src/messaging', ...common],
  'src/archive': ['events', 'src/async', 'src/event-store', 'src/s3', ...common],
  'src/doctor': [...core, 'src/browser-link', 'src/config', 'src/embedded', 'src/provisioner'],
  'src/cli': [
    ...core,
    'src/history',
    'src/recordings',
    'src/profiles',
    'src/audit',
    'src/operator',
    'src/config',
    'src/embedded',
    'src/bootstrap/cli.ts',
    'src/bootstrap/audit-key.ts',
    'src/bootstrap/archive-files.ts',
    'src/archivist',
    'src/bootstrap/doctor.ts',
    'src/bootstrap/backup.ts',
    'src/bootstrap/operator/browser-image.ts',
    'src/bootstrap/find-service.ts',
    // Commands that ask the API.
    'src/client',
    'src/doctor',
    'src/backup',
    'src/archive',
  ],
  // They put the parts together.
  'src/bootstrap': ['events', 'src', 'projections'],
  'src/run-service.ts': ['src/async', 'src/bootstrap', 'src/config', 'src/telemetry', ...common],
  'src/main.ts': ['src/run-service.ts'],
  test: ['events', 'src', 'projections', 'test', 'deploy', 'package.json'],
};

/** The folder of each role, and what composes it: a process loads those of its roles alone. */
export const roles: Readonly<Record<string, string>> = {
  'src/api': 'src/bootstrap/api.ts',
  'src/provisioner': 'src/bootstrap/provisioner.ts',
  'src/gateway': 'src/bootstrap/gateway.ts',
  'src/timekeeper': 'src/bootstrap/timekeeper.ts',
  'src/archivist': 'src/bootstrap/archivist.ts',
  'src/webhook-sender': 'src/bootstrap/webhooks/compose-webhooks.ts',
};

/** Files of a role's folder that others need too: the addresses and passwords of sessions. */
export const inEachProcess: readonly string[] = [
  'src/gateway/access/ticket.ts',
  'src/gateway/access/urls.ts',
  'src/gateway/access/vnc-secret.ts',
  'src/provisioner/egress/proxy-password.ts',
];

/** Layers that have to have files: a walk that missed them proves nothing. */
export const mustExist = Object.keys(layers);

/** The layer of a file of ours; null where the table has none. */
export function layerOf(path: string): string | null {
  return Object.keys(layers).find((layer) => isWithin(path, layer)) ?? null;
}

export function mayImport(layer: string, path: string): boolean {
  return [layer, ...(layers[layer] ?? [])].some((allowed) => isWithin(path, allowed));
}

function isWithin(path: string, layer: string): boolean {
  return path === layer || path.startsWith(`${layer}/`);
}

const technologies = [
  'memory',
  'jetstream',
  'redis',
  'docker',
  'kubernetes',
  'process',
  'simulated',
  's3',
  'folder',
] as const;
type Technology = (typeof technologies)[number];

/**
 * The technology of an adapter or of a part of one: that of its folder, or for an adapter of one
 * file the end of its name. `store/redis/scripts.ts` and `rate-limit.redis.ts` are of redis.
 */
export function technologyOf(path: string): Technology | null {
  const [name = '', ...folders] = path.split('/').toReversed();
  const found = technologies.find(
    (technology) => folders.includes(technology) || name.endsWith(`.${technology}.ts`),
  );
  return found ?? null;
}

/** Whether a file may import another: one of a technology only from its own, and bootstrap. */
export function mayAdapt({ path }: SourceFile, imported: string): boolean {
  const technology = technologyOf(imported);
  if (!isOurs(imported) || technology === null) return true;
  if (technologyOf(path) === technology) return true;
  return ['src/bootstrap', 'test'].includes(layerOf(path) ?? '');
}

/** Where a package may be imported: a folder, one file, or the adapters of a technology. */
export const packages: Readonly<Record<string, readonly string[]>> = {
  typebox: ['events', 'src/api', 'src/feed', 'src/client'],
  // Keys and JWTs of NATS are no part of an adapter.
  '@nats-io': ['jetstream', 'src/tenants/nkey.ts', 'src/tenants/user-jwt.ts'],
  ioredis: ['redis'],
  dockerode: ['docker'],
  '@kubernetes': ['kubernetes'],
  fastify: ['src/api'],
  '@modelcontextprotocol': ['src/api/mcp'],
  '@fastify': ['src/api'],
  '@scalar': ['src/api/docs'],
  jose: [
    'src/api',
    'src/archive/signature.ts',
    'src/bootstrap/audit-key.ts',
    'src/cli',
    'src/tenants/user-jwt.ts',
  ],
  '@aws-sdk': ['s3'],
  'tar-stream': [
    'docker',
    'src/profiles',
    'src/provisioner/extensions',
    'src/provisioner/browsers/chromium',
  ],
  yazl: ['src/api'],
  // No process of the service loads it.
  '@duckdb': ['src/cli/sql'],
  yauzl: ['src/extensions'],
  ws: ['src/gateway', 'src/api/pages', 'src/browser-link', 'simulated', 'kubernetes'],
  'proxy-chain': ['src/provisioner/egress'],
  'chromium-bidi': ['src/gateway'],
  selfsigned: ['src/gateway'],
  '@novnc': ['src/gateway', 'src/dashboard'],
  preact: ['src/dashboard'],
  '@preact': ['src/dashboard'],
  '@tanstack': ['src/dashboard'],
  uplot: ['src/dashboard/pool'],
  vite: ['src/dashboard/vite.config.ts'],
  pino: ['src/telemetry'],
  'pino-pretty': ['src/telemetry'],
  'prom-client': ['src/telemetry'],
  '@opentelemetry': ['src/telemetry'],
};

/**
 * Where JSON is parsed that this service wrote itself, or that its operator did. All other JSON is
 * somebody else's, and passes `parseForeignJson`.
 */
export const ownJson: readonly string[] = [
  'src/foreign/foreign-json.ts',
  // Events, states and views, from the stores.
  'events',
  'projections',
  'src/archive',
  'src/event-store/chain.ts',
  'src/backup',
  'src/commands',
  'src/messaging',
  'src/timekeeper',
  'src/webhooks',
  'src/api/files',
  'src/api/health',
  'src/api/routes',
  'src/api/schemas',
  'src/api/sessions',
  'src/api/time-travel',
  // Its own schemas and answers.
  'src/api/docs',
  'src/api/http/validation.ts',
  'src/api/mcp',
  // What another process of it prints, its own records and archives.
  'src/extensions/extension-reader.ts',
  'src/profiles',
  'src/gateway/bidi/bidi-program.ts',
  'src/provisioner/browsers/process/records.ts',
  // The operator's files and engines.
  'src/bootstrap',
  'src/cli',
  'src/config',
  'src/embedded',
  'src/provisioner/browsers/docker',
  'src/provisioner/browsers/kubernetes',
  // A process of its own, for one client; a browser that is none.
  'src/gateway/bidi/bidi-commands.ts',
  'src/provisioner/browsers/simulated',
  // They run with who uses the service.
  'src/client',
  'src/dashboard',
];

/** Whether a file parses JSON of this service alone. */
export function isOwnJson(path: string): boolean {
  return ownJson.some((place) => isWithin(path, place));
}

/** Whether a file may import another, if that is a package; tests may import any. */
export function mayUse({ path }: SourceFile, imported: string): boolean {
  if (isOurs(imported) || imported.startsWith('node:') || isWithin(path, 'test')) return true;
  const places = packages[imported.split('/')[0] ?? ''] ?? [];
  return places.some((place) => isWithin(path, place) || technologyOf(path) === place);
}

/** Whether an import is a file of this project. */
export function isOurs(imported: string): boolean {
  return /^(events|src|projections|test|deploy)\//.test(imported) || imported === 'package.json';
}

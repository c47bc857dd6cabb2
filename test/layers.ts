import type { SourceFile } from './support/sources/source-files.ts';

/** Who may import whom: the one table of the architecture that a test holds (structure.test.ts). */

/** What any file may import but those of the contract. */
const common = [
  'src/kernel/errors.ts',
  'src/kernel/ids.ts',
  'src/kernel/moment.ts',
  'src/kernel/master-keys.ts',
  'src/kernel/foreign',
  'src/kernel/optional-package.ts',
  'package.json',
];
/** Reading and writing the log, above the stores: what each role builds on. */
const core = [
  'events',
  'src/kernel/domain',
  'src/kernel/async',
  'src/kernel/http',
  'src/kernel/host',
  'src/kernel/event-store',
  'src/kernel/messaging',
  'src/kernel/objects',
  'src/kernel/billing',
  'src/kernel/telemetry',
  'projections',
  'src/commands',
  ...common,
];

/**
 * The rooms of the house, from the ground up: a file imports its own room and those before it. The
 * core is what has to be there for a session to live: all up to the roles. It imports no feature.
 */
export const rooms = [
  'events',
  'src/kernel',
  'projections',
  'src/browsers',
  'src/commands',
  'src/roles',
  'src/features',
  'src/start',
  'src/apps',
  'src/main.ts',
] as const;

/**
 * Each layer's folder or file, and the folders and files it may import beside its own; a folder in
 * another one comes before that. No feature imports another, and no role another.
 */
export const layers: Readonly<Record<string, readonly string[]>> = {
  events: [],
  'src/kernel/errors.ts': [],
  'src/kernel/ids.ts': [],
  'src/kernel/moment.ts': [],
  'src/kernel/master-keys.ts': [],
  'src/kernel/optional-package.ts': ['package.json'],
  'src/kernel/foreign': [],
  'src/kernel/domain': ['events', ...common],
  'src/kernel/async': [...common],
  'src/kernel/http': ['src/kernel/async', 'src/kernel/foreign', ...common],
  // What this process may have of its machine.
  'src/kernel/host': ['src/kernel/domain', 'src/kernel/async', ...common],
  // The client of buckets, for archive and objects.
  'src/kernel/s3': [...common],
  'src/kernel/telemetry': ['events', 'src/kernel/async', 'src/kernel/http', ...common],
  'src/kernel/event-store': [
    'events',
    'src/kernel/domain',
    'src/kernel/async',
    'src/kernel/telemetry',
    ...common,
  ],
  'src/kernel/messaging': [
    'events',
    'src/kernel/domain',
    'src/kernel/async',
    'src/kernel/event-store',
    'src/kernel/telemetry',
    ...common,
  ],
  // Files, profiles, recordings and what else is stored as it is, beside the events.
  // What is stored is removed again.
  'src/kernel/objects/sweep': [
    'events',
    'src/kernel/domain',
    'src/kernel/async',
    'src/kernel/event-store',
    'src/kernel/messaging',
    'src/kernel/objects',
    'src/kernel/telemetry',
    ...common,
  ],
  'src/kernel/objects': [
    'events',
    'src/kernel/async',
    'src/kernel/event-store',
    'src/kernel/s3',
    ...common,
  ],
  // What a session's events say: for the API and the command line.
  'src/kernel/history': ['events', 'src/kernel/domain', 'src/kernel/event-store', ...common],
  'src/kernel/billing': ['events', 'src/kernel/domain', 'src/kernel/event-store', ...common],
  'src/kernel/config': ['events', 'src/kernel/domain', ...common],
  projections: [
    'events',
    'src/kernel/async',
    'src/kernel/event-store/event-store.ts',
    'src/kernel/event-store/load-state.ts',
    'src/kernel/event-store/unreadable.ts',
    'src/kernel/messaging/work-queue.ts',
    'src/kernel/messaging/timers.ts',
    'src/kernel/messaging/leases.ts',
    'src/kernel/messaging/dead-letters.ts',
    'src/kernel/telemetry',
    ...common,
  ],
  // How a browser's sockets are reached, and the client of CDP, for the roles that reach them.
  'src/browsers/link': ['src/kernel/async', ...common],
  // What an uploaded extension has to be, for the API and for servers of browsers.
  'src/browsers/extensions': ['src/kernel/async', 'src/kernel/objects', ...common],
  'src/browsers': [
    'events',
    'src/kernel/domain',
    'src/kernel/async',
    'src/kernel/telemetry',
    ...common,
  ],
  'src/commands': [
    'events',
    'src/kernel/domain',
    'src/kernel/async',
    'src/kernel/event-store',
    'src/kernel/messaging',
    'src/kernel/billing',
    'src/kernel/telemetry',
    'projections',
    ...common,
  ],
  // The features stand on the core, which imports none of them.
  'src/features': [
    ...core,
    'src/kernel/config',
    'src/kernel/s3',
    'src/browsers',
    'src/roles/api',
    // What a server of browsers asks of its parts.
    'src/roles/provisioner/browser-part.ts',
    'src/roles/provisioner/profiles.ts',
  ],
  // The roles: none imports another.
  'src/roles/api': [...core, 'src/kernel/history', 'src/browsers/extensions', 'src/browsers/link'],
  'src/roles/provisioner': [...core, 'src/browsers'],
  'src/roles/timekeeper': core,
  'src/roles/gateway': [...core, 'src/browsers/link'],
  'src/roles/feed': core,
  // They put the parts together.
  'src/start/embedded': [
    'events',
    'src/kernel/async',
    'src/kernel/config',
    'src/kernel/telemetry',
    ...common,
  ],
  'src/start': ['events', 'src', 'projections'],
  'src/main.ts': ['src/start/run-service.ts'],
  // It runs in a browser: of the service it has types, its pages, and the sentences about events.
  'src/apps/dashboard': [
    'events/session.ts',
    'events/cloud-event.ts',
    'events/events.ts',
    'events/pool.ts',
    'src/kernel/history/describe-actor.ts',
    'src/kernel/history/describe-event.ts',
    'src/features/recordings/replay.ts',
    'src/features/recordings/segment-format.ts',
    'src/roles/api/dashboard/pages.ts',
  ],
  // What its users have: types of the service alone, which leave nothing behind.
  'src/apps/client': [
    'events',
    'src/roles/api/schemas',
    'src/features/debugger-address/routes/schemas.ts',
    'src/features/extensions/routes/schemas.ts',
    'src/features/files/routes/schemas.ts',
    'src/features/pages/routes/page-call.ts',
    'src/features/profiles/routes/schemas.ts',
    'src/features/recordings/routes/schemas.ts',
    'src/features/webhooks/routes/schemas.ts',
    'src/kernel/errors.ts',
  ],
  'src/apps/doctor': [...core, 'src/kernel/config', 'src/browsers', 'src/start'],
  'src/apps/cli': [
    ...core,
    'src/kernel/config',
    'src/kernel/history',
    'src/features/archive',
    'src/features/audit',
    'src/features/backup',
    'src/features/profiles',
    'src/features/recordings',
    'src/start',
    // Commands that ask the API.
    'src/apps/client',
    'src/apps/doctor',
  ],
  test: ['events', 'src', 'projections', 'test', 'deploy', 'package.json'],
};

/** The folder of a feature, as `src/features/files`; null: the file is of none. */
export function featureOf(path: string): string | null {
  return /^src\/features\/[^/]+(?=\/)/.exec(path)?.[0] ?? null;
}

/**
 * What knows a feature of the list beside the programs of people: the bounds of what stands before
 * the service, and the key of the passwords that the API seals and a server of browsers opens.
 */
export const knowFeatures: readonly string[] = [
  'src/start/edge/ways.ts',
  'src/start/infrastructure.ts',
];

/** The folder of each role, and what composes it: a process loads those of its roles alone. */
export const roles: Readonly<Record<string, string>> = {
  'src/roles/api': 'src/start/api.ts',
  'src/roles/provisioner': 'src/start/provisioner.ts',
  'src/roles/gateway': 'src/start/gateway.ts',
  'src/roles/timekeeper': 'src/start/timekeeper.ts',
  'src/features/archive/archivist': 'src/start/archive/archivist.ts',
  'src/features/webhooks/sender': 'src/features/webhooks/sender/compose.ts',
};

/** Files of a role's folder that others need too: the addresses and passwords of sessions. */
export const inEachProcess: readonly string[] = [
  'src/roles/gateway/access/ticket.ts',
  'src/roles/gateway/access/urls.ts',
  'src/roles/gateway/access/vnc-secret.ts',
  'src/features/egress/proxy-password.ts',
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

export function isWithin(path: string, layer: string): boolean {
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

/** Folders that compose, and the files of that name: they name the technologies. */
const compositions = ['src/start', 'src/features/feature.ts', 'test'];

/** Whether a file may import another: one of a technology only from its own, or to compose. */
export function mayAdapt({ path }: SourceFile, imported: string): boolean {
  const technology = technologyOf(imported);
  if (!isOurs(imported) || technology === null) return true;
  if (technologyOf(path) === technology) return true;
  return path.endsWith('/compose.ts') || compositions.some((folder) => isWithin(path, folder));
}

/** Whether an import is a file of this project. */
export function isOurs(imported: string): boolean {
  return /^(events|src|projections|test|deploy)\//.test(imported) || imported === 'package.json';
}

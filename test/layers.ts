import type { SourceFile } from './support/source-files.ts';

/** Who may import whom: the one table of the architecture that a test holds (tidy.test.ts). */

const domain = ['src/session', 'src/organization', 'src/fleet'];
/** What any file may import but those of the contract. */
const common = ['src/errors.ts', 'src/ids.ts', 'src/moment.ts', 'package.json'];
/** The parts that do things; they never import each other. */
const role = ['events', ...domain, 'src/log', 'projections', ...common, 'src/telemetry'];

/** Each layer's folder or file, and the folders and files it may import beside its own. */
export const layers: Readonly<Record<string, readonly string[]>> = {
  events: [],
  'src/errors.ts': [],
  'src/ids.ts': [],
  'src/moment.ts': [],
  'src/session': ['events', ...common],
  'src/organization': ['events', ...common],
  'src/fleet': ['events', ...common],
  'src/log': ['events', ...domain, ...common, 'src/telemetry'],
  projections: [
    'events',
    'src/log/event-log.ts',
    'src/log/consume.ts',
    'src/log/timers.ts',
    'src/log/leases.ts',
    'src/log/parked.ts',
    ...common,
    'src/telemetry',
  ],
  'src/api': role,
  'src/provisioner': role,
  'src/timekeeper': role,
  'src/gateway': role,
  'src/feed': role,
  'src/tenants': role,
  // What its users have: types of the service alone, which leave nothing behind.
  'src/client': ['events', 'src/api/schemas.ts', 'src/api/request-schemas.ts', 'src/errors.ts'],
  'src/telemetry': ['events', ...common],
  'src/config.ts': [
    'src/config-values.ts',
    'src/config-docker.ts',
    'src/config-jwt.ts',
    'src/config-secrets.ts',
    'src/config-stores.ts',
    'src/config-telemetry.ts',
    'src/config-tenants.ts',
    'src/config-tls.ts',
    'events',
    'src/organization',
    ...common,
  ],
  'src/embedded': ['events', 'src/config.ts', ...common, 'src/telemetry'],
  'src/dashboard': ['events', ...common],
  'src/cli': [
    ...role,
    'src/config.ts',
    'src/config-values.ts',
    'src/embedded',
    'src/compose-cli.ts',
    'src/compose-doctor.ts',
    'src/compose-backup.ts',
    'src/doctor',
    'src/backup',
  ],
  'src/backup': ['events', 'src/log', ...common],
  'src/doctor': [
    ...role,
    'src/config.ts',
    'src/config-docker.ts',
    'src/config-secrets.ts',
    'src/embedded',
    'src/provisioner',
  ],
  // They put the parts together.
  'src/main.ts': ['events', 'src', 'projections'],
  'src/start.ts': ['events', 'src', 'projections'],
  'src/welcome.ts': ['events', 'src', 'projections'],
  'src/compose.ts': ['events', 'src', 'projections'],
  test: ['events', 'src', 'projections', 'test', 'deploy', 'package.json'],
};

/** Layers that have to have files: a walk that missed them proves nothing. */
export const mustExist = Object.keys(layers).filter(
  (layer) => !['src/dashboard', 'src/cli', 'src/welcome.ts'].includes(layer),
);

/** The layer of a file of ours; null where the table has none. */
export function layerOf(path: string): string | null {
  if (/^src\/compose[^/]*\.ts$/.test(path)) return 'src/compose.ts';
  if (/^src\/config[^/]*\.ts$/.test(path)) return 'src/config.ts';
  return Object.keys(layers).find((layer) => isWithin(path, layer)) ?? null;
}

export function mayImport(layer: string, path: string): boolean {
  return [layer, ...(layers[layer] ?? [])].some((allowed) => isWithin(path, allowed));
}

function isWithin(path: string, layer: string): boolean {
  return path === layer || path.startsWith(`${layer}/`);
}

const technologies = ['memory', 'jetstream', 'redis', 'docker', 'process', 'simulated'] as const;
type Technology = (typeof technologies)[number];

/** `views.redis.ts` is an adapter of redis, `jetstream-append.ts` a part of one. */
export function technologyOf(path: string): Technology | null {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const found = technologies.find(
    (technology) => name.endsWith(`.${technology}.ts`) || name.startsWith(`${technology}-`),
  );
  return found ?? null;
}

/** Whether a file may import another, if that is an adapter: `views.redis.ts`. */
export function mayAdapt({ path }: SourceFile, imported: string): boolean {
  const isAdapter = technologies.some((technology) => imported.endsWith(`.${technology}.ts`));
  if (!isAdapter || technologyOf(path) === technologyOf(imported)) return true;
  return ['src/compose.ts', 'test'].includes(layerOf(path) ?? '');
}

/** Where a package may be imported: a folder, one file, or the adapters of a technology. */
export const packages: Readonly<Record<string, readonly string[]>> = {
  typebox: ['events', 'src/api', 'src/feed', 'src/client'],
  '@nats-io': ['jetstream'],
  ioredis: ['redis'],
  dockerode: ['docker'],
  fastify: ['src/api'],
  '@fastify': ['src/api'],
  jose: ['src/api', 'src/cli'],
  // chromium-launch.ts asks a browser that starts whether it answers; chromium-window.ts sizes it.
  ws: [
    'src/gateway',
    'simulated',
    'src/provisioner/chromium-launch.ts',
    'src/provisioner/chromium-window.ts',
  ],
  selfsigned: ['src/gateway'],
  '@novnc': ['src/gateway'],
  pino: ['src/telemetry'],
  'pino-pretty': ['src/telemetry'],
  'prom-client': ['src/telemetry'],
  '@opentelemetry': ['src/telemetry'],
};

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

import { isOurs, isWithin, technologyOf } from './layers.ts';
import type { SourceFile } from './support/sources/source-files.ts';

/**
 * Where a package may be imported: a folder, one file, or the adapters of a technology. Routes are
 * in the features' folders of that name.
 */
export const packages: Readonly<Record<string, readonly string[]>> = {
  typebox: [
    'events',
    'src/roles/api',
    'routes',
    'src/features/mcp',
    'src/roles/feed',
    'src/apps/client',
  ],
  // Keys and JWTs of NATS are no part of an adapter.
  '@nats-io': [
    'jetstream',
    'src/features/nats-tenants/nkey.ts',
    'src/features/nats-tenants/user-jwt.ts',
  ],
  ioredis: ['redis'],
  dockerode: ['docker'],
  '@kubernetes': ['kubernetes'],
  fastify: [
    'src/roles/api',
    'routes',
    'src/features/mcp',
    'src/features/pages',
    'src/features/webdriver',
  ],
  '@modelcontextprotocol': ['src/features/mcp'],
  '@fastify': ['src/roles/api'],
  '@scalar': ['src/roles/api/docs'],
  jose: [
    'src/roles/api',
    'src/features/archive/signature.ts',
    'src/start/audit-key.ts',
    'src/apps/cli',
    'src/features/nats-tenants/user-jwt.ts',
  ],
  '@aws-sdk': ['s3'],
  'tar-stream': [
    'docker',
    'src/features/profiles',
    'src/browsers/extensions',
    'src/browsers/chromium',
  ],
  yazl: ['src/roles/api'],
  // No process of the service loads it.
  '@duckdb': ['src/apps/cli/sql'],
  yauzl: ['src/browsers/extensions'],
  ws: ['src/roles/gateway', 'src/features/pages', 'src/browsers/link', 'simulated', 'kubernetes'],
  'proxy-chain': ['src/features/egress'],
  'chromium-bidi': ['src/roles/gateway'],
  selfsigned: ['src/roles/gateway'],
  '@novnc': ['src/roles/gateway', 'src/apps/dashboard'],
  preact: ['src/apps/dashboard'],
  '@preact': ['src/apps/dashboard'],
  '@tanstack': ['src/apps/dashboard'],
  uplot: ['src/apps/dashboard/pool'],
  vite: ['src/apps/dashboard/vite.config.ts'],
  pino: ['src/kernel/telemetry'],
  'pino-pretty': ['src/kernel/telemetry'],
  'prom-client': ['src/kernel/telemetry'],
  '@opentelemetry': ['src/kernel/telemetry'],
};

/**
 * Where JSON is parsed that this service wrote itself, or that its operator did. All other JSON is
 * somebody else's, and passes `parseForeignJson`.
 */
export const ownJson: readonly string[] = [
  'src/kernel/foreign/foreign-json.ts',
  // Events, states and views, from the stores.
  'events',
  'projections',
  'src/features/archive',
  'src/kernel/event-store/chain.ts',
  'src/features/backup',
  'src/commands',
  'src/kernel/messaging',
  'src/roles/timekeeper',
  'src/features/handoff',
  'src/features/webhooks',
  'src/roles/api/files',
  'src/roles/api/health',
  'src/roles/api/routes',
  'src/roles/api/schemas',
  'src/roles/api/sessions',
  'src/roles/api/time-travel',
  // Its own schemas and answers.
  'src/roles/api/docs',
  'src/roles/api/http/validation.ts',
  'src/features/mcp',
  // What another process of it prints, its own records and archives.
  'src/browsers/extensions/extension-reader.ts',
  'src/features/profiles',
  'src/roles/gateway/bidi/bidi-program.ts',
  'src/browsers/process/records.ts',
  // The operator's files and engines.
  'src/start',
  'src/apps/cli',
  'src/kernel/config',
  'src/start/embedded',
  'src/browsers/docker',
  'src/browsers/kubernetes',
  // A process of its own, for one client; a browser that is none.
  'src/roles/gateway/bidi/bidi-commands.ts',
  'src/browsers/simulated',
  // They run with who uses the service.
  'src/apps/client',
  'src/apps/dashboard',
];

/** Whether a file parses JSON of this service alone. */
export function isOwnJson(path: string): boolean {
  return ownJson.some((place) => isWithin(path, place));
}

/** Whether a file may import another, if that is a package; tests may import any. */
export function mayUse({ path }: SourceFile, imported: string): boolean {
  if (isOurs(imported) || imported.startsWith('node:') || isWithin(path, 'test')) return true;
  const places = packages[imported.split('/')[0] ?? ''] ?? [];
  return places.some(
    (place) => isWithin(path, place) || technologyOf(path) === place || isRoute(path, place),
  );
}

function isRoute(path: string, place: string): boolean {
  return place === 'routes' && /^src\/features\/[^/]+\/routes\//.test(path);
}

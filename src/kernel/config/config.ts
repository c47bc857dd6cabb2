import { resolve } from 'node:path';
import { MASTER_KEYS_MAX, masterKeyTexts } from '#src/kernel/master-keys.ts';
import { archiveVariables, readArchive, type ArchiveConfig } from './archive.ts';
import { dockerVariables, readDocker, readLimits, type DockerConfig } from './docker.ts';
import { kubernetesVariables, readKubernetes, type KubernetesConfig } from './kubernetes.ts';
import { gatewayVariables, readGateway, type GatewayConfig } from './gateway.ts';
import { filesVariables, readFiles, type FilesConfig } from './files.ts';
import { jwtVariables, readJwt, type JwtConfig } from './jwt.ts';
import {
  isLoopback,
  isProduction,
  readText,
  refuseWeakSecrets,
  secretFileVariables,
  withSecretFiles,
} from './secrets.ts';
import { ownHostsVariables, readOwnHosts } from './own-hosts.ts';
import { objectsVariables, readObjects, type ObjectsConfig } from './objects.ts';
import { readRecordings, recordingsVariables, type RecordingsConfig } from './recordings.ts';
import { s3Variables } from './s3.ts';
import { mcpVariables, readMcp, type McpConfig } from './mcp.ts';
import { processVariables, readProcess, type ProcessConfig } from './process.ts';
import { profilesVariables, readProfiles, type ProfilesConfig } from './profiles.ts';
import { readStores, storesVariables, type StoresConfig } from './stores.ts';
import { readTelemetry, telemetryVariables, type TelemetryConfig } from './telemetry.ts';
import { readTenants, tenantVariables, type TenantsConfig } from './tenants.ts';
import { readWebhooks, webhooksVariables, type WebhooksConfig } from './webhooks.ts';
import { incomingVariables, readIncoming, type IncomingConfig } from './tls.ts';
import {
  BadConfig,
  duration,
  entries,
  integer,
  oneOf,
  parseJson,
  secret,
  share,
  wait,
  type Read,
} from './parse.ts';
import { defaultTiers, type Tiers } from '#src/kernel/domain/organization/tiers.ts';
import { tierNames } from '#events/organization.ts';

export const roles = [
  'api',
  'projector',
  'provisioner',
  'gateway',
  'timekeeper',
  'archivist',
  'webhooks',
] as const;
export type RoleName = (typeof roles)[number];

/**
 * All of the service's configuration, read once from the environment. Durations in milliseconds.
 */
export type Config = StoresConfig &
  ProcessConfig & {
    mcp: McpConfig;
    /** `operatorPort` null: what operators ask is at `port`. */
    api: { host: string; port: number; operatorPort: number | null; createWaitMs: number };
    gateway: GatewayConfig;
    /** Names and addresses at which this service is reached. */
    ownHosts: readonly string[];
    incoming: IncomingConfig;
    dataDir: string;
    /** The key that signs audits; null: one in the data folder. */
    auditKeyFile: string | null;
    archive: ArchiveConfig;
    objects: ObjectsConfig;
    recordings: RecordingsConfig;
    roles: readonly RoleName[];
    browsers: {
      kind: 'docker' | 'kubernetes' | 'process' | 'simulated';
      simulatedLaunchMs: number;
      simulatedFailRate: number;
      /** null: no Docker browsers. */
      docker: DockerConfig | null;
      /** null: no browsers in Pods. */
      kubernetes: KubernetesConfig | null;
      /**
       * Whether this process may run browsers that are not isolated; null: it runs none.
       * `development`: only this machine reaches it. `allowed`: by ALLOW_UNISOLATED.
       */
      unisolated: 'development' | 'allowed' | 'refused' | null;
    };
    pool: { minIdle: number; maxIdle: number; max: number };
    queue: { afterMs: number; timeoutMs: number; max: number; perOrganizationMax: number };
    profiles: ProfilesConfig;
    maxLifetimeMs: number;
    files: FilesConfig;
    tiers: Tiers;
    tenants: TenantsConfig;
    webhooks: WebhooksConfig;
    /** Limits of the open event streams of one process. */
    eventStreams: { max: number; perOrganizationMax: number };
    /** `devApiKey` and `masterKey`; null: generated at first start, kept in the data folder. */
    devApiKey: string | null;
    masterKey: string | null;
    /**
     * Bearer token of /api/operator; null: there is no such path, unless everything is embedded,
     * where it is generated at first start and kept.
     */
    operatorToken: string | null;
    /** null: only API keys are accepted. */
    jwt: JwtConfig | null;
    telemetry: TelemetryConfig;
    logLevel: string;
  };

type Variable = { fallback: string; meaning: string };

/** Every variable with its default, as `--help` prints them. */
export const variables = {
  PORT: { fallback: '8080', meaning: 'port of the API' },
  HOST: { fallback: '127.0.0.1', meaning: 'address that API and gateway listen on' },
  ...gatewayVariables,
  ...ownHostsVariables,
  DATA_DIR: {
    fallback: '.data',
    meaning: 'folder of the embedded event store, secrets and runtime.json',
  },
  ...processVariables,
  ...mcpVariables,
  AUDIT_KEY_FILE: {
    fallback: '',
    meaning:
      'key that signs exported audits, the same for all api processes; empty: audit-key in ' +
      'DATA_DIR',
  },
  ...incomingVariables,
  ...storesVariables,
  ...archiveVariables,
  ...s3Variables,
  ...objectsVariables,
  ...recordingsVariables,
  ROLES: { fallback: 'all', meaning: `roles of this process: all, or some of ${roles.join(',')}` },
  BROWSERS: {
    fallback: 'process',
    meaning: 'docker, kubernetes, process (no isolation) or simulated (load tests)',
  },
  ALLOW_UNISOLATED: {
    fallback: 'no',
    meaning: 'yes: run BROWSERS=process even in production or with a HOST that others reach',
  },
  ...dockerVariables,
  ...kubernetesVariables,
  SIMULATED_LAUNCH_MS: { fallback: '300ms', meaning: 'launch time of a simulated browser' },
  SIMULATED_FAIL_RATE: { fallback: '0', meaning: 'share of simulated launches that fail, 0 to 1' },
  POOL_MIN_IDLE: { fallback: '1', meaning: 'minimum number of idle browsers' },
  POOL_MAX_IDLE: {
    fallback: '',
    meaning: 'maximum number of idle browsers; empty: POOL_MAX',
  },
  POOL_MAX: { fallback: '4', meaning: 'maximum number of browsers of a server' },
  CREATE_WAIT: { fallback: '15s', meaning: 'how long POST /api/sessions waits for active' },
  QUEUE_AFTER: {
    fallback: '1s',
    meaning: 'a request that no server takes within this time is queued',
  },
  QUEUE_TIMEOUT: {
    fallback: '5m',
    meaning: 'a request that no server takes within this time fails',
  },
  QUEUE_MAX: { fallback: '100', meaning: 'waiting requests beyond which creates are refused' },
  QUEUE_MAX_PER_ORGANIZATION: {
    fallback: '',
    meaning: 'the same for one organization; empty: a third of QUEUE_MAX',
  },
  ...profilesVariables,
  MAX_LIFETIME: { fallback: '72h', meaning: 'longest life of a session, extensions included' },
  TIERS: {
    fallback: '{}',
    meaning: 'JSON that overrides limits of tiers, as {"pro":{"concurrent_sessions":50}}',
  },
  ...tenantVariables,
  ...webhooksVariables,
  EVENT_STREAMS_MAX: {
    fallback: '1000',
    meaning: 'maximum number of event streams of a process',
  },
  EVENT_STREAMS_PER_ORGANIZATION: {
    fallback: '250',
    meaning: 'the same for one organization',
  },
  DEV_API_KEY: {
    fallback: '',
    meaning:
      'API key of the organization dev; empty: generated and kept; a revoked key stays refused',
  },
  MASTER_KEY: {
    fallback: '',
    meaning:
      'key of profiles, webhooks, tickets, VNC passwords and links to browsers; up to four ' +
      'older keys may follow it, separated by white space; empty: generated and kept',
  },
  OPERATOR_PORT: {
    fallback: '',
    meaning:
      'further port of the API for a network of operators; /api/operator is then at this ' +
      'port alone; empty: at PORT',
  },
  OPERATOR_TOKEN: {
    fallback: '',
    meaning:
      'bearer token of /api/operator; empty: generated and kept, or with NATS_URL no such ' +
      'path',
  },
  ...jwtVariables,
  ...secretFileVariables,
  NODE_ENV: {
    fallback: '',
    meaning:
      'production: refuse weak secrets and process browsers; a NATS_URL of another machine does ' +
      'the same',
  },
  ...filesVariables,
  ...telemetryVariables,
  LOG_LEVEL: {
    fallback: 'info',
    meaning: 'least level that is logged: trace, debug, info, warn, error or silent',
  },
} as const satisfies Record<string, Variable>;
export type VariableName = keyof typeof variables;

/** Reads the environment. @throws BadConfig naming the first variable that is wrong */
export function readConfig(given: Record<string, string | undefined>): Config {
  const env = withSecretFiles(given);
  refuseWeakSecrets(env);
  const read = (name: VariableName) => env[name]?.trim() || variables[name].fallback;
  const incoming = readIncoming(read);
  const optional = (name: VariableName) => read(name) || null;
  const gateway = readGateway(read, {
    hasTls: incoming.certificate !== null,
    isHere: readRoles(read('ROLES')).includes('gateway'),
  });
  const stores = readStores(read);
  return {
    api: {
      host: read('HOST'),
      port: integer('PORT', read, 1, 65_535),
      operatorPort: read('OPERATOR_PORT') === '' ? null : integer('OPERATOR_PORT', read, 1, 65_535),
      createWaitMs: wait('CREATE_WAIT', read),
    },
    gateway,
    ownHosts: readOwnHosts(read, { gateway, ...stores }),
    incoming,
    dataDir: resolve(read('DATA_DIR')),
    ...readProcess(read),
    mcp: readMcp(read),
    auditKeyFile: readableFile('AUDIT_KEY_FILE', read),
    ...stores,
    archive: readArchive(read),
    objects: readObjects(read),
    recordings: readRecordings(read),
    roles: readRoles(read('ROLES')),
    browsers: {
      kind: oneOf('BROWSERS', read, ['docker', 'kubernetes', 'process', 'simulated']),
      simulatedLaunchMs: wait('SIMULATED_LAUNCH_MS', read),
      simulatedFailRate: share('SIMULATED_FAIL_RATE', read),
      docker: read('BROWSERS') === 'docker' ? readDocker(read) : null,
      kubernetes:
        read('BROWSERS') === 'kubernetes'
          ? readKubernetes(read, readLimits(read), readFiles(read).sessionBytesMax)
          : null,
      unisolated: readUnisolated(read, isProduction(env)),
    },
    pool: pool(read),
    queue: queue(read),
    profiles: readProfiles(read),
    maxLifetimeMs: lifetime(read),
    files: readFiles(read),
    tiers: readTiers(read('TIERS')),
    tenants: readTenants(read),
    webhooks: readWebhooks(read),
    eventStreams: {
      max: integer('EVENT_STREAMS_MAX', read, 1, 100_000),
      perOrganizationMax: integer('EVENT_STREAMS_PER_ORGANIZATION', read, 1, 100_000),
    },
    devApiKey: secret('DEV_API_KEY', optional, 16),
    masterKey: masterKeys(optional),
    operatorToken: secret('OPERATOR_TOKEN', optional, 16),
    jwt: readJwt(read),
    telemetry: readTelemetry(read),
    logLevel: oneOf('LOG_LEVEL', read, ['trace', 'debug', 'info', 'warn', 'error', 'silent']),
  };
}

/** The keys as they are given: one by one they are as other secrets are. */
function masterKeys(optional: (name: 'MASTER_KEY') => string | null): string | null {
  const text = optional('MASTER_KEY');
  if (text === null) return null;
  const keys = masterKeyTexts(text).map((key) => secret('MASTER_KEY', () => key, 32));
  if (keys.length > MASTER_KEYS_MAX)
    throw new BadConfig(`MASTER_KEY: more than ${MASTER_KEYS_MAX}`);
  if (new Set(keys).size < keys.length) throw new BadConfig('MASTER_KEY: a key is given twice');
  return text;
}

/** The shortest duration that a session may request. */
const LIFETIME_MIN_MS = 60_000;

function lifetime(read: Read<VariableName>): number {
  const ms = duration('MAX_LIFETIME', read);
  if (ms < LIFETIME_MIN_MS) throw new BadConfig('MAX_LIFETIME: must be at least 1m');
  return ms;
}

/** The path of a file that is there; null: none is named. */
function readableFile(name: VariableName, read: (name: VariableName) => string): string | null {
  const path = read(name) || null;
  if (path !== null) readText(name, path);
  return path;
}

/** A page in a process browser reads what the service's user reads, MASTER_KEY included. */
function readUnisolated(
  read: Read<VariableName>,
  isSerious: boolean,
): Config['browsers']['unisolated'] {
  const allowed = oneOf('ALLOW_UNISOLATED', read, ['yes', 'no']);
  const isHere = readRoles(read('ROLES')).includes('provisioner');
  if (!isHere || read('BROWSERS') !== 'process') return null;
  if (!isSerious && isLoopback(read('HOST'))) return 'development';
  return allowed === 'yes' ? 'allowed' : 'refused';
}

function readRoles(text: string): readonly RoleName[] {
  if (text === 'all') return roles;
  const names = text.split(',').map((name) => name.trim());
  return names.map((name) => oneOf('ROLES', () => name, [...roles]));
}

function queue(read: Read<VariableName>): Config['queue'] {
  const max = integer('QUEUE_MAX', read, 0, 1_000_000);
  const perOrganizationMax =
    read('QUEUE_MAX_PER_ORGANIZATION') === ''
      ? Math.ceil(max / 3)
      : integer('QUEUE_MAX_PER_ORGANIZATION', read, 0, 1_000_000);
  return {
    afterMs: duration('QUEUE_AFTER', read),
    timeoutMs: duration('QUEUE_TIMEOUT', read),
    max,
    perOrganizationMax,
  };
}

function pool(read: Read<VariableName>): Config['pool'] {
  const max = integer('POOL_MAX', read, 1, 1_000_000);
  const minIdle = integer('POOL_MIN_IDLE', read, 0, 1_000_000);
  if (minIdle > max) throw new BadConfig(`POOL_MIN_IDLE: ${minIdle} is more than POOL_MAX, ${max}`);
  const maxIdle = read('POOL_MAX_IDLE') === '' ? max : integer('POOL_MAX_IDLE', read, 0, max);
  return { minIdle, maxIdle: Math.max(minIdle, maxIdle), max };
}

const TIER_FIELDS = {
  requests_per_minute: 'requestsPerMinute',
  concurrent_sessions: 'concurrentSessions',
  credits: 'credits',
  queue_weight: 'queueWeight',
} as const;

function readTiers(text: string): Tiers {
  const tiers: Tiers = structuredClone(defaultTiers);
  for (const [tier, limits] of entries('TIERS', parseJson('TIERS', text))) {
    const name = oneOf('TIERS', () => tier, [...tierNames]);
    for (const [field, value] of entries(`TIERS: ${tier}`, limits)) {
      const key = TIER_FIELDS[field as keyof typeof TIER_FIELDS];
      const least = key === 'queueWeight' ? 1 : 0;
      if (key === undefined || !Number.isSafeInteger(value) || Number(value) < least)
        throw new BadConfig(`TIERS: ${tier}.${field}: ${String(value)}`);
      tiers[name][key] = Number(value);
    }
  }
  return tiers;
}

/** The table that `--help` prints. */
export function helpText(): string {
  const width = Math.max(...Object.keys(variables).map((name) => name.length)) + 2;
  const lines = Object.entries(variables).map(
    ([name, { fallback, meaning }]) =>
      `  ${name.padEnd(width)}${(fallback || '–').padEnd(12)}${meaning}`,
  );
  return ['Configuration, from the environment:', '', ...lines, ''].join('\n');
}

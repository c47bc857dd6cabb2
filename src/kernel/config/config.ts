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
  readableFile,
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
import { readSessions, sessionsVariables, type SessionsConfig } from './sessions.ts';
import { readStores, storesVariables, type StoresConfig } from './stores.ts';
import { readTelemetry, telemetryVariables, type TelemetryConfig } from './telemetry.ts';
import { readTenants, tenantVariables, type TenantsConfig } from './tenants.ts';
import { readWebhooks, webhooksVariables, type WebhooksConfig } from './webhooks.ts';
import { incomingVariables, readIncoming, type IncomingConfig } from './tls.ts';
import {
  BadConfig,
  decimal,
  integer,
  oneOf,
  optional,
  port,
  secret,
  text,
  valuesOf,
  wait,
  yesOrNo,
  type Form,
  type Values,
  type Variables,
  variable,
} from './parse.ts';

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
  ProcessConfig &
  SessionsConfig & {
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
    profiles: ProfilesConfig;
    files: FilesConfig;
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

/** `all`, or names with commas. */
const roleNames: Form<readonly RoleName[]> = {
  says: '',
  parse: (given, name) =>
    given === 'all'
      ? roles
      : given.split(',').map((part) => oneOf(...roles).parse(part.trim(), name)),
};

/** The keys as they are given: one by one they are as other secrets are. */
const masterKeys: Form<string> = {
  says: '32 to 512 characters each',
  parse(given, name) {
    const keys = masterKeyTexts(given).map((key) => secret(32).parse(key, name));
    if (keys.length > MASTER_KEYS_MAX) throw new BadConfig(`${name}: more than ${MASTER_KEYS_MAX}`);
    if (new Set(keys).size < keys.length) throw new BadConfig(`${name}: a key is given twice`);
    return given;
  },
};

/** Every variable with its default, as `--help` prints them. */
export const variables = {
  PORT: variable(port, '8080', 'port of the API'),
  HOST: variable(text, '127.0.0.1', 'address that API and gateway listen on'),
  ...gatewayVariables,
  ...ownHostsVariables,
  DATA_DIR: variable(text, '.data', 'folder of the embedded event store, secrets and runtime.json'),
  ...processVariables,
  ...mcpVariables,
  AUDIT_KEY_FILE: variable(
    optional(readableFile),
    '',
    'key that signs exported audits, the same for all api processes; empty: audit-key in ' +
      'DATA_DIR',
  ),
  ...incomingVariables,
  ...storesVariables,
  ...archiveVariables,
  ...s3Variables,
  ...objectsVariables,
  ...recordingsVariables,
  ROLES: variable(roleNames, 'all', `roles of this process: all, or some of ${roles.join(',')}`),
  BROWSERS: variable(
    oneOf('docker', 'kubernetes', 'process', 'simulated'),
    'process',
    'docker, kubernetes, process (no isolation) or simulated (load tests)',
  ),
  ALLOW_UNISOLATED: variable(
    yesOrNo,
    'no',
    'yes: run BROWSERS=process even in production or with a HOST that others reach',
  ),
  ...dockerVariables,
  ...kubernetesVariables,
  SIMULATED_LAUNCH_MS: variable(wait(), '300ms', 'launch time of a simulated browser'),
  SIMULATED_FAIL_RATE: variable(
    decimal(0, 1),
    '0',
    'share of simulated launches that fail, 0 to 1',
  ),
  POOL_MIN_IDLE: variable(integer(0, 1_000_000), '1', 'minimum number of idle browsers'),
  POOL_MAX_IDLE: variable(
    optional(integer(0, 1_000_000)),
    '',
    'maximum number of idle browsers; empty: POOL_MAX',
  ),
  POOL_MAX: variable(integer(1, 1_000_000), '4', 'maximum number of browsers of a server'),
  CREATE_WAIT: variable(wait(), '15s', 'how long POST /api/sessions waits for active'),
  ...sessionsVariables,
  ...profilesVariables,
  ...tenantVariables,
  ...webhooksVariables,
  EVENT_STREAMS_MAX: variable(
    integer(1, 100_000),
    '1000',
    'maximum number of event streams of a process',
  ),
  EVENT_STREAMS_PER_ORGANIZATION: variable(
    integer(1, 100_000),
    '250',
    'the same for one organization',
  ),
  DEV_API_KEY: variable(
    optional(secret(16)),
    '',
    'API key of the organization dev; empty: generated and kept; a revoked key stays refused',
  ),
  MASTER_KEY: variable(
    optional(masterKeys),
    '',
    'key of profiles, webhooks, tickets, VNC passwords and links to browsers; up to four ' +
      'older keys may follow it, separated by white space; empty: generated and kept',
  ),
  OPERATOR_PORT: variable(
    optional(port),
    '',
    'further port of the API for a network of operators; /api/operator is then at this ' +
      'port alone; empty: at PORT',
  ),
  OPERATOR_TOKEN: variable(
    optional(secret(16)),
    '',
    'bearer token of /api/operator; empty: generated and kept, or with NATS_URL no such path',
  ),
  ...jwtVariables,
  ...secretFileVariables,
  NODE_ENV: variable(
    text,
    '',
    'production: refuse weak secrets and process browsers; a NATS_URL of another machine does ' +
      'the same',
  ),
  ...filesVariables,
  ...telemetryVariables,
  LOG_LEVEL: variable(
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'silent'),
    'info',
    'least level that is logged: trace, debug, info, warn, error or silent',
  ),
} as const satisfies Variables;
export type VariableName = keyof typeof variables;

/** Reads the environment. @throws BadConfig naming the first variable that is wrong */
export function readConfig(given: Record<string, string | undefined>): Config {
  const env = withSecretFiles(given);
  refuseWeakSecrets(env);
  const values = valuesOf(variables, env);
  const incoming = readIncoming(values);
  const gateway = readGateway(values, {
    hasTls: incoming.certificate !== null,
    isHere: values.ROLES.includes('gateway'),
  });
  const stores = readStores(values);
  return {
    api: {
      host: values.HOST,
      port: values.PORT,
      operatorPort: values.OPERATOR_PORT,
      createWaitMs: values.CREATE_WAIT,
    },
    gateway,
    ownHosts: readOwnHosts(values, { gateway, ...stores }),
    incoming,
    dataDir: resolve(values.DATA_DIR),
    ...readProcess(values),
    mcp: readMcp(values),
    auditKeyFile: values.AUDIT_KEY_FILE,
    ...stores,
    archive: readArchive(values),
    objects: readObjects(values),
    recordings: readRecordings(values),
    roles: values.ROLES,
    browsers: {
      kind: values.BROWSERS,
      simulatedLaunchMs: values.SIMULATED_LAUNCH_MS,
      simulatedFailRate: values.SIMULATED_FAIL_RATE,
      docker: values.BROWSERS === 'docker' ? readDocker(values) : null,
      kubernetes:
        values.BROWSERS === 'kubernetes'
          ? readKubernetes(values, readLimits(values), readFiles(values).sessionBytesMax)
          : null,
      unisolated: readUnisolated(values, isProduction(env)),
    },
    pool: readPool(values),
    ...readSessions(values),
    profiles: readProfiles(values),
    files: readFiles(values),
    tenants: readTenants(values),
    webhooks: readWebhooks(values),
    eventStreams: {
      max: values.EVENT_STREAMS_MAX,
      perOrganizationMax: values.EVENT_STREAMS_PER_ORGANIZATION,
    },
    devApiKey: values.DEV_API_KEY,
    masterKey: values.MASTER_KEY,
    operatorToken: values.OPERATOR_TOKEN,
    jwt: readJwt(values),
    telemetry: readTelemetry(values),
    logLevel: values.LOG_LEVEL,
  };
}

type Given = Values<typeof variables>;

/** A page in a process browser reads what the service's user reads, MASTER_KEY included. */
function readUnisolated(values: Given, isSerious: boolean): Config['browsers']['unisolated'] {
  const { ALLOW_UNISOLATED: isAllowed, BROWSERS: kind } = values;
  if (!values.ROLES.includes('provisioner') || kind !== 'process') return null;
  if (!isSerious && isLoopback(values.HOST)) return 'development';
  return isAllowed ? 'allowed' : 'refused';
}

function readPool(values: Given): Config['pool'] {
  const { POOL_MAX: max, POOL_MIN_IDLE: minIdle } = values;
  const maxIdle = values.POOL_MAX_IDLE ?? max;
  if (minIdle > max) throw new BadConfig(`POOL_MIN_IDLE: ${minIdle} is more than POOL_MAX, ${max}`);
  if (maxIdle > max) throw new BadConfig(`POOL_MAX_IDLE: ${maxIdle} is more than POOL_MAX, ${max}`);
  return { minIdle, maxIdle: Math.max(minIdle, maxIdle), max };
}

/** The table that `--help` prints. */
export function helpText(): string {
  const width = Math.max(...Object.keys(variables).map((name) => name.length)) + 2;
  const lines = Object.entries(variables).map(
    ([name, { form, fallback, meaning }]) =>
      `  ${name.padEnd(width)}${(fallback || '–').padEnd(12)}${meaning}` +
      (form.says === '' ? '' : ` (${form.says})`),
  );
  return ['Configuration, from the environment:', '', ...lines, ''].join('\n');
}

import { variables, type VariableName } from '#src/kernel/config/config.ts';

type Topic = {
  title: string;
  /** The subject of the whole group, in a sentence; empty if the title says it. */
  about: string;
  /** Its variables in the order of the document, each with the unit or form of its value. */
  units: Partial<Record<VariableName, string>>;
};

const DURATION = 'duration';
const PORT = 'port';
const COUNT = 'count';
const URL_FORM = 'URL';
const FILE = 'path';
const TEXT = 'text';

/**
 * Every variable once, by topic; `configuration-document.test.ts` checks that the list is complete.
 */
export const topics: readonly Topic[] = [
  {
    title: 'Process',
    about: 'What this process runs and where it keeps its data.',
    units: {
      ROLES: 'names',
      DATA_DIR: 'path',
      SERVER_ID: 'name',
      SERVER_LOST_AFTER: DURATION,
      SHUTDOWN_WITHIN: DURATION,
      AUDIT_KEY_FILE: 'path',
      NODE_ENV: 'word',
      LOG_LEVEL: 'word',
    },
  },
  {
    title: 'HTTP API and gateway',
    about: 'Where the process listens, and the addresses that clients are given.',
    units: {
      HOST: 'address',
      PORT,
      GATEWAY_PORT: PORT,
      GATEWAY_TLS_PORT: PORT,
      PUBLIC_GATEWAY_WS_URL: URL_FORM,
      PUBLIC_GATEWAY_WSS_URL: URL_FORM,
      GATEWAY_URL: URL_FORM,
      OWN_HOSTS: 'hosts',
      DEBUGGER_PORTS: 'range',
      DEBUGGER_HOST: 'address',
      PUBLIC_DEBUGGER_HOST: 'host',
      TLS_CERT_FILE: FILE,
      TLS_KEY_FILE: FILE,
      TRUSTED_PROXIES: 'networks',
      MCP_GRACE: DURATION,
      MCP_SILENCE: DURATION,
      EVENT_STREAMS_MAX: COUNT,
      EVENT_STREAMS_PER_ORGANIZATION: COUNT,
    },
  },
  {
    title: 'NATS: the event store',
    about: 'Without NATS_URL the process starts a nats-server of its own in DATA_DIR.',
    units: {
      NATS_URL: 'URLs',
      NATS_USER: TEXT,
      NATS_PASSWORD: TEXT,
      NATS_PASSWORD_FILE: FILE,
      NATS_CREDS_FILE: FILE,
      NATS_CA_FILE: FILE,
      NATS_CERT_FILE: FILE,
      NATS_KEY_FILE: FILE,
      NATS_INBOX_PREFIX: TEXT,
      NATS_REPLICAS: COUNT,
    },
  },
  {
    title: 'Retention and the archive',
    about:
      'The archivist seals what ended into the archive. All processes read it there, and need ' +
      'the same values.',
    units: {
      RETAIN_ENDED: 'duration, or forever',
      RETAIN_EVENTS_MAX: COUNT,
      ARCHIVE_EVERY: DURATION,
      ARCHIVE_URL: 'path or URL',
      ARCHIVE_S3_ENDPOINT: URL_FORM,
      ARCHIVE_S3_REGION: TEXT,
    },
  },
  {
    title: 'Objects',
    about: 'Files, profiles, recordings and extensions, see src/kernel/objects/README.md.',
    units: {
      OBJECT_STORE: 'jetstream or URL',
      OBJECT_STORE_MAX_MB: 'MB',
      OBJECT_STORE_ORGANIZATION_MAX_MB: 'MB',
      OBJECT_SWEEP_EVERY: DURATION,
      PROFILE_REPLACED_KEPT: DURATION,
      FILES_FILE_MAX: 'bytes, as 200MB',
      FILES_SESSION_MAX: 'bytes, as 1GB',
      FILES_RETAIN: DURATION,
      PROFILE_VERSIONS: COUNT,
      PROFILE_MB_MAX: 'MB',
    },
  },
  {
    title: 'Recordings',
    about: 'Screens of sessions that were created with `record: true`.',
    units: { RECORDING_MAX_MB: 'MB', RECORDINGS_RETAIN: DURATION },
  },
  {
    title: 'NATS: tenants',
    about:
      'Organizations that read their events from NATS, see src/features/nats-tenants/README.md.',
    units: {
      NATS_PORT: PORT,
      PUBLIC_NATS_URL: URL_FORM,
      NATS_ISSUER_SEED: TEXT,
      NATS_ISSUER_SEED_FILE: FILE,
      TENANT_CONNECTIONS_PER_KEY: COUNT,
    },
  },
  {
    title: 'Webhooks',
    about: 'Events that are sent to organizations’ own URLs, see src/features/webhooks/README.md.',
    units: { WEBHOOKS_ALLOW_PRIVATE: 'yes or no' },
  },
  {
    title: 'Redis: the read models',
    about: 'Without REDIS_URL the process starts a redis-server of its own.',
    units: {
      REDIS_URL: URL_FORM,
      REDIS_USER: TEXT,
      REDIS_PASSWORD: TEXT,
      REDIS_PASSWORD_FILE: FILE,
      REDIS_CA_FILE: FILE,
      REDIS_CERT_FILE: FILE,
      REDIS_KEY_FILE: FILE,
    },
  },
  {
    title: 'Sessions and queue',
    about: 'How long things may take, and what organizations may use.',
    units: {
      CREATE_WAIT: DURATION,
      QUEUE_AFTER: DURATION,
      QUEUE_TIMEOUT: DURATION,
      QUEUE_MAX: COUNT,
      QUEUE_MAX_PER_ORGANIZATION: COUNT,
      MAX_LIFETIME: DURATION,
      TIERS: 'JSON',
    },
  },
  {
    title: 'Browsers and pool',
    about: 'The pool of browsers of a process with the role provisioner.',
    units: {
      BROWSERS: 'word',
      ALLOW_UNISOLATED: 'word',
      POOL_MIN_IDLE: COUNT,
      POOL_MAX_IDLE: COUNT,
      POOL_MAX: COUNT,
      SIMULATED_LAUNCH_MS: DURATION,
      SIMULATED_FAIL_RATE: 'share',
    },
  },
  {
    title: 'Docker browsers',
    about:
      'Read with BROWSERS=docker alone; those of the image and its limits with kubernetes, too.',
    units: {
      DOCKER_HOST: URL_FORM,
      DOCKER_NETWORK: 'name',
      DOCKER_PUBLISH: 'address',
      DOCKER_DNS: 'addresses',
      DOCKER_ISOLATION: 'word',
      DOCKER_ON_SHUTDOWN: 'word',
      BROWSER_IMAGE: 'image',
      BROWSER_IMAGE_REBUILD: DURATION,
      BROWSER_MEMORY_MB: 'MB',
      BROWSER_CPUS: 'cores',
      BROWSER_PIDS: COUNT,
    },
  },
  {
    title: 'Kubernetes browsers',
    about: 'Read with BROWSERS=kubernetes alone, see src/browsers/kubernetes/README.md.',
    units: {
      KUBECONFIG: FILE,
      KUBERNETES_NAMESPACE: 'name',
      KUBERNETES_ISOLATION: 'word',
      KUBERNETES_SECCOMP: 'path',
      KUBERNETES_RUNTIME_CLASS: 'name',
      KUBERNETES_USER_NAMESPACES: 'word',
      KUBERNETES_DNS: 'addresses or cluster',
      KUBERNETES_POD: 'JSON',
      KUBERNETES_OWNER: 'name',
      KUBERNETES_LAUNCH_TIMEOUT: DURATION,
      KUBERNETES_LAUNCHES: COUNT,
      KUBERNETES_ON_SHUTDOWN: 'word',
      BROWSER_MEMORY_REQUEST_MB: 'MB',
      BROWSER_CPUS_REQUEST: 'cores',
    },
  },
  {
    title: 'Credentials',
    about: 'Secrets of the service itself and the key of the development organization.',
    units: {
      MASTER_KEY: TEXT,
      MASTER_KEY_FILE: FILE,
      DEV_API_KEY: TEXT,
      DEV_API_KEY_FILE: FILE,
      OPERATOR_PORT: PORT,
      OPERATOR_TOKEN: TEXT,
      OPERATOR_TOKEN_FILE: FILE,
      JWT_SECRET: TEXT,
      JWT_SECRET_FILE: FILE,
      JWT_JWKS_URL: URL_FORM,
      JWT_ALGORITHMS: 'names',
      JWT_ISSUER: TEXT,
      JWT_AUDIENCE: TEXT,
    },
  },
  {
    title: 'Telemetry',
    about: 'Metrics and traces, see metrics.md.',
    units: {
      METRICS_PORT: PORT,
      METRICS_TOKEN: TEXT,
      METRICS_TOKEN_FILE: FILE,
      OTEL_EXPORTER_OTLP_ENDPOINT: URL_FORM,
    },
  },
];

const HEAD = `# Configuration

Generated from \`src/kernel/config\`; do not edit it by hand.
\`UPDATE_GOLDEN=1 npm test -- test/unit/config\` writes it anew.

All configuration comes from environment variables, read once at the start. A variable that is wrong
stops the start with a line that begins with its name.
\`npm start -- --help\` prints the same table.

- **duration**: a whole number with a unit, as \`500ms\`, \`3s\`, \`5m\` or \`72h\`.
  A bare number counts as milliseconds if the variable's name ends in \`_MS\`.
- **share**: a number from 0 to 1.
- **default** "–": not set. The meaning says what the service does then.
- \`<NAME>_FILE\` names a file that holds the secret, in place of \`<NAME>\`.
  Setting both is an error.

The paths of the programs that the service starts are taken from \`CHROMIUM\`, \`XTIGERVNC\`,
\`CHROMEDRIVER\`, \`NATS_SERVER\` and \`REDIS_SERVER\`, if set; otherwise they are found on the
machine or, but for the driver, installed (\`src/start/embedded/install/programs.ts\`). What needs
root is printed before, and asked for on a terminal: \`BSS_INSTALL=yes\` agrees, \`BSS_INSTALL=no\`
declines. Without a terminal root and a run of CI (\`CI\`) agree, and any other user declines.
`;

/** The text of deploy/configuration.md, generated from the variables of `src/kernel/config`. */
export function configurationDocument(): string {
  return [HEAD, ...topics.map(sectionOf)].join('\n');
}

function sectionOf({ title, about, units }: Topic): string {
  const rows = Object.entries(units).map(([name, unit]) => {
    const { fallback, meaning } = variables[name as VariableName];
    const shown = fallback === '' ? '–' : `\`${fallback}\``;
    return `| \`${name}\` | ${unit} | ${shown} | ${meaning.replaceAll('|', '\\|')} |`;
  });
  const head = ['| variable | unit | default | meaning |', '|---|---|---|---|'];
  return `${[`## ${title}`, '', about, '', ...head, ...rows].join('\n')}\n`;
}

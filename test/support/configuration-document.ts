import { variables, type VariableName } from '#src/kernel/config/config.ts';
import { secretNames } from '#src/kernel/config/secrets.ts';

type Topic = {
  title: string;
  /** The subject of the whole group; none if the title says it. */
  about?: string;
  /** Its variables in the order of the document. */
  names: readonly VariableName[];
};

/**
 * Every variable once, by topic, without the files of secrets, which the document's head lists;
 * `configuration-document.test.ts` checks that the list is complete.
 */
export const topics: readonly Topic[] = [
  {
    title: 'Process',
    names: [
      'ROLES',
      'DATA_DIR',
      'SERVER_ID',
      'SERVER_LOST_AFTER',
      'SHUTDOWN_WITHIN',
      'AUDIT_KEY_FILE',
      'NODE_ENV',
      'LOG_LEVEL',
    ],
  },
  {
    title: 'HTTP API and gateway',
    names: [
      'HOST',
      'PORT',
      'GATEWAY_PORT',
      'GATEWAY_TLS_PORT',
      'PUBLIC_GATEWAY_WS_URL',
      'PUBLIC_GATEWAY_WSS_URL',
      'GATEWAY_URL',
      'OWN_HOSTS',
      'DEBUGGER_PORTS',
      'DEBUGGER_HOST',
      'PUBLIC_DEBUGGER_HOST',
      'TLS_CERT_FILE',
      'TLS_KEY_FILE',
      'TRUSTED_PROXIES',
      'MCP_GRACE',
      'MCP_SILENCE',
      'EVENT_STREAMS_MAX',
      'EVENT_STREAMS_PER_ORGANIZATION',
    ],
  },
  {
    title: 'NATS: the event store',
    names: [
      'NATS_URL',
      'NATS_USER',
      'NATS_PASSWORD',
      'NATS_CREDS_FILE',
      'NATS_CA_FILE',
      'NATS_CERT_FILE',
      'NATS_KEY_FILE',
      'NATS_INBOX_PREFIX',
      'NATS_REPLICAS',
    ],
  },
  {
    title: 'Retention and the archive',
    about: 'All processes need the same values.',
    names: [
      'RETAIN_ENDED',
      'RETAIN_EVENTS_MAX',
      'ARCHIVE_EVERY',
      'ARCHIVE_URL',
      'ARCHIVE_S3_ENDPOINT',
      'ARCHIVE_S3_REGION',
    ],
  },
  {
    title: 'Objects',
    about: 'See src/kernel/objects/README.md.',
    names: [
      'OBJECT_STORE',
      'OBJECT_STORE_MAX_MB',
      'OBJECT_STORE_ORGANIZATION_MAX_MB',
      'OBJECT_SWEEP_EVERY',
      'PROFILE_REPLACED_KEPT',
      'FILES_FILE_MAX',
      'FILES_SESSION_MAX',
      'FILES_RETAIN',
      'PROFILE_VERSIONS',
      'PROFILE_MB_MAX',
    ],
  },
  {
    title: 'Recordings',
    about: 'Screens of sessions that were created with `record: true`.',
    names: ['RECORDING_MAX_MB', 'RECORDINGS_RETAIN'],
  },
  {
    title: 'NATS: tenants',
    about: 'See src/features/nats-tenants/README.md.',
    names: ['NATS_PORT', 'PUBLIC_NATS_URL', 'NATS_ISSUER_SEED', 'TENANT_CONNECTIONS_PER_KEY'],
  },
  {
    title: 'Webhooks',
    about: 'See src/features/webhooks/README.md.',
    names: ['WEBHOOKS_ALLOW_PRIVATE'],
  },
  {
    title: 'Redis: the read models',
    names: [
      'REDIS_URL',
      'REDIS_USER',
      'REDIS_PASSWORD',
      'REDIS_CA_FILE',
      'REDIS_CERT_FILE',
      'REDIS_KEY_FILE',
    ],
  },
  {
    title: 'Sessions and queue',
    names: [
      'CREATE_WAIT',
      'QUEUE_AFTER',
      'QUEUE_TIMEOUT',
      'QUEUE_MAX',
      'QUEUE_MAX_PER_ORGANIZATION',
      'MAX_LIFETIME',
      'TIERS',
    ],
  },
  {
    title: 'Browsers and pool',
    about: 'For the role provisioner.',
    names: [
      'BROWSERS',
      'ALLOW_UNISOLATED',
      'POOL_MIN_IDLE',
      'POOL_MAX_IDLE',
      'POOL_MAX',
      'SIMULATED_LAUNCH_MS',
      'SIMULATED_FAIL_RATE',
    ],
  },
  {
    title: 'Docker browsers',
    about:
      'Read with BROWSERS=docker; BROWSER_IMAGE, BROWSER_MEMORY_MB and BROWSER_CPUS with ' +
      'kubernetes, too.',
    names: [
      'DOCKER_HOST',
      'DOCKER_NETWORK',
      'DOCKER_PUBLISH',
      'DOCKER_DNS',
      'DOCKER_ISOLATION',
      'DOCKER_ON_SHUTDOWN',
      'BROWSER_IMAGE',
      'BROWSER_IMAGE_REBUILD',
      'BROWSER_MEMORY_MB',
      'BROWSER_CPUS',
      'BROWSER_PIDS',
    ],
  },
  {
    title: 'Kubernetes browsers',
    about: 'Read with BROWSERS=kubernetes, see src/browsers/kubernetes/README.md.',
    names: [
      'KUBECONFIG',
      'KUBERNETES_NAMESPACE',
      'KUBERNETES_ISOLATION',
      'KUBERNETES_SECCOMP',
      'KUBERNETES_RUNTIME_CLASS',
      'KUBERNETES_USER_NAMESPACES',
      'KUBERNETES_DNS',
      'KUBERNETES_POD',
      'KUBERNETES_OWNER',
      'KUBERNETES_LAUNCH_TIMEOUT',
      'KUBERNETES_LAUNCHES',
      'KUBERNETES_ON_SHUTDOWN',
      'BROWSER_MEMORY_REQUEST_MB',
      'BROWSER_CPUS_REQUEST',
    ],
  },
  {
    title: 'Credentials',
    names: [
      'MASTER_KEY',
      'DEV_API_KEY',
      'OPERATOR_PORT',
      'OPERATOR_TOKEN',
      'JWT_SECRET',
      'JWT_JWKS_URL',
      'JWT_ALGORITHMS',
      'JWT_ISSUER',
      'JWT_AUDIENCE',
    ],
  },
  {
    title: 'Telemetry',
    about: 'See metrics.md.',
    names: ['METRICS_PORT', 'METRICS_TOKEN', 'OTEL_EXPORTER_OTLP_ENDPOINT'],
  },
];

const FILES = secretNames.map((name) => `\`${name}_FILE\``);
const HEAD = `# Configuration

Generated from \`src/kernel/config\` by \`UPDATE_GOLDEN=1 npm test -- test/unit/config\`.

All configuration comes from environment variables, read once at the start. A wrong variable stops
the start with a line that begins with its name. \`npm start -- --help\` prints the same table.

- A duration is a whole number with a unit, as \`500ms\`, \`3s\`, \`5m\`, \`72h\` or \`30d\`;
  without one it counts as milliseconds if the variable's name ends in \`_MS\`.
- A secret may be in a file, named by one of these variables in place of the secret's own:
  ${FILES.slice(0, 4).join(', ')},
  ${FILES.slice(4).join(', ')}.

\`CHROMIUM\`, \`XTIGERVNC\`, \`CHROMEDRIVER\`, \`NATS_SERVER\` and \`REDIS_SERVER\` are the paths
of the programs that the service starts. Without its path a program is found on the machine or,
but for the driver, installed (\`src/start/embedded/install/programs.ts\`). What needs root is
printed and asked for on a terminal: \`BSS_INSTALL=yes\` agrees, \`BSS_INSTALL=no\` declines.
Without a terminal root and CI (\`CI\`) agree, and any other user declines.
`;

/** The text of deploy/configuration.md, generated from the variables of `src/kernel/config`. */
export function configurationDocument(): string {
  return [HEAD, ...topics.map(sectionOf)].join('\n');
}

function sectionOf({ title, about, names }: Topic): string {
  const rows = names.map((name) => {
    const { fallback, meaning } = variables[name];
    const shown = fallback === '' ? '' : ` \`${fallback}\``;
    return `| \`${name}\` |${shown} | ${meaning.replaceAll('|', '\\|')} |`;
  });
  const lead = about === undefined ? [] : [about, ''];
  const table = ['| variable | default | meaning |', '|---|---|---|', ...rows];
  return `${[`## ${title}`, '', ...lead, ...table].join('\n')}\n`;
}

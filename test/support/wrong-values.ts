import type { variables } from '#src/kernel/config/config.ts';

/** Every invalid value of each variable of the service: missing, malformed, unreachable, weak. */

export const NATS = { NATS_URL: 'nats://127.0.0.1:4222' };
const TLS = { NATS_URL: 'tls://127.0.0.1:4222' };
const REDIS = { REDIS_URL: 'redis://127.0.0.1:6379' };
const REDISS = { REDIS_URL: 'rediss://127.0.0.1:6379' };
const DOCKER = { BROWSERS: 'docker' };
const PODS = { BROWSERS: 'kubernetes', BROWSER_IMAGE: 'registry.example/browser:1' };
const JWKS = { JWT_JWKS_URL: 'https://login.example/keys' };
const WHO = { JWT_ISSUER: 'https://login.example', JWT_AUDIENCE: 'browsers' };
export const STRONG = 'tGm4Zk0vQe8RzjU1c7LwXb5HfAy2NpDs9KiJ';
export const SERIOUS = { NODE_ENV: 'production' };

/**
 * The invalid value, other variables that have to be set for it to matter, and the expected reason.
 */
type Row = [value: string, reason: RegExp, beside?: Record<string, string>];

/** Any text is valid; its meaning is checked when it is used. */
const ANY: Row[] = [];

const port: Row[] = [
  ['eighty', /not a whole number from 1 to 65535/],
  ['0', /not a whole number/],
  ['65536', /not a whole number/],
  ['80.5', /not a whole number/],
];
const duration: Row[] = [
  ['soon', /is not like 500ms, 3s, 5m, 72h or 30d/],
  ['-3s', /is not like/],
  ['1w', /is not like/],
];
const wait: Row[] = [...duration, ['597h', /longer than 596h, the maximum of a timer/]];
const count: Row[] = [
  ['many', /not a whole number/],
  ['-1', /not a whole number/],
];
const bytes: Row[] = [
  ['huge', /is not like 64KB, 200MB or 1GB/],
  ['1000', /is not like/],
  ['0MB', /is not like/],
  ['2000GB', /up to 1024GB/],
];
const file = (beside: Record<string, string>, what: RegExp): Row[] => [
  ['/nowhere/at/all.pem', /\/nowhere\/at\/all\.pem cannot be read \(ENOENT\)/, beside],
  ['/tmp', /\/tmp cannot be read \(EISDIR\)/, beside],
  ['GARBAGE', what, beside],
];
const secretFile = (name: string): Row[] => [
  ['/nowhere/at/all', /cannot be read \(ENOENT\)/],
  ['EMPTY', /is empty/],
  ['STRONG', new RegExp(`not together with ${name}`), { [name]: STRONG }],
];
const weak = (beside: Record<string, string>, value: string, reason: RegExp): Row => [
  value,
  reason,
  { ...beside, ...SERIOUS },
];

/**
 * Without a row for each variable this does not compile; names in capitals are files of the test.
 */
export const table: Record<keyof typeof variables, Row[]> = {
  PORT: port,
  HOST: ANY,
  GATEWAY_PORT: port,
  GATEWAY_TLS_PORT: port,
  PUBLIC_GATEWAY_WS_URL: [
    ['http://browsers.example', /is not a ws:\/\/ or wss:\/\/ address/],
    ['browsers.example', /is not a ws/],
    ['ws://browsers.example?a=b', /is not a ws/],
  ],
  OWN_HOSTS: [
    ['https://bss.example.org', /is no name of a host and no address/],
    ['bss.example.org, a b', /a b is no name/],
  ],
  GATEWAY_URL: [
    ['ws://gateway:8081', /is not a http:\/\/ or https:\/\/ address/],
    ['gateway:8081', /is not a http/],
  ],
  DEBUGGER_PORTS: [
    ['9300', /is no range of at most 1000 ports/],
    ['9399-9300', /is no range/],
    ['0-10', /is no range/],
    ['65000-65536', /is no range/],
    ['9000-10000', /is no range/],
  ],
  DEBUGGER_HOST: ANY,
  PUBLIC_DEBUGGER_HOST: ANY,
  PUBLIC_GATEWAY_WSS_URL: [['ws://browsers.example', /is not a wss:\/\/ address/]],
  TLS_CERT_FILE: [
    ...file({ TLS_KEY_FILE: 'KEY' }, /has no certificate in PEM/),
    ['', /needed beside TLS_KEY_FILE/, { TLS_KEY_FILE: 'KEY' }],
  ],
  TLS_KEY_FILE: [
    ...file({ TLS_CERT_FILE: 'CERT' }, /has no private key in PEM/),
    ['', /needed beside TLS_CERT_FILE/, { TLS_CERT_FILE: 'CERT' }],
    ['OTHER_KEY', /is not the key of/, { TLS_CERT_FILE: 'CERT' }],
  ],
  TRUSTED_PROXIES: [
    ['proxy.example', /is neither an address nor a network/],
    ['10.0.0.0/33', /is neither an address/],
    ['10.0.0.0/8/8', /is neither an address/],
    ['10.0.0.1,,10.0.0.2', /is neither an address/],
    ['0.0.0.0/0', /would trust every address/],
    ['::/0', /would trust every address/],
  ],
  DATA_DIR: ANY,
  AUDIT_KEY_FILE: [
    ['/nowhere/at/all', /cannot be read \(ENOENT\)/],
    ['/tmp', /cannot be read \(EISDIR\)/],
  ],
  SERVER_ID: [['a.b', /is not 1 to 64 letters/]],
  MCP_GRACE: [...wait, ['1s', /is less than 2s/]],
  MCP_SILENCE: [...wait, ['59s', /is less than MCP_GRACE/]],
  SERVER_LOST_AFTER: [...wait, ['9s', /is less than 10s/]],
  SHUTDOWN_WITHIN: [...wait, ['10ms', /is less than 1s/]],
  RETAIN_ENDED: duration,
  RETAIN_EVENTS_MAX: count,
  ARCHIVE_EVERY: duration,
  RECORDING_MAX_MB: count,
  RECORDINGS_RETAIN: duration,
  ARCHIVE_URL: [
    ['ftp://files.example/archive', /is no folder and not s3/],
    ['s3://', /is not like s3:\/\/bucket\/prefix/],
  ],
  ARCHIVE_S3_ENDPOINT: [
    ['nowhere', /is not a URL/, { ARCHIVE_URL: 's3://bucket' }],
    ['http://127.0.0.1:9000', /nor OBJECT_STORE is s3/],
  ],
  ARCHIVE_S3_REGION: ANY,
  NATS_URL: [
    ['http://127.0.0.1:4222', /is not a nats:\/\/ or tls:\/\/ address/],
    ['127.0.0.1:4222', /is not a nats/],
    ['nats://a:4222,', /is empty/],
    ['nats://a:4222,tls://b:4222', /are mixed/],
    ['nats://user:hunter2@ho st:4222', /^NATS_URL: …@ho st:4222 is not a/],
  ],
  NATS_USER: [
    ['api', /has no effect without NATS_URL/],
    ['', /needed beside NATS_PASSWORD/, { ...NATS, NATS_PASSWORD: STRONG }],
    ['api', /has a user already/, { NATS_URL: 'nats://a:b@127.0.0.1', NATS_PASSWORD: STRONG }],
  ],
  NATS_PASSWORD: [
    [STRONG, /has no effect without NATS_URL/],
    ['', /needed beside NATS_USER/, { ...NATS, NATS_USER: 'api' }],
    weak({ ...NATS, NATS_USER: 'api' }, 'changeme-now', /too weak for production/),
  ],
  NATS_PASSWORD_FILE: secretFile('NATS_PASSWORD'),
  NATS_CREDS_FILE: [
    ...file(NATS, /has no JWT with its seed/),
    ['GARBAGE', /not together with a user/, { NATS_URL: 'nats://a:b@127.0.0.1' }],
    ['GARBAGE', /has no effect without NATS_URL/],
  ],
  NATS_CA_FILE: [
    ...file(TLS, /has no certificate in PEM/),
    ['CERT', /has no effect without tls:\/\/ in NATS_URL/, NATS],
  ],
  NATS_CERT_FILE: [
    ...file({ ...TLS, NATS_KEY_FILE: 'KEY' }, /has no certificate in PEM/),
    ['', /needed beside NATS_KEY_FILE/, { ...TLS, NATS_KEY_FILE: 'KEY' }],
  ],
  NATS_KEY_FILE: [
    ...file({ ...TLS, NATS_CERT_FILE: 'CERT' }, /has no private key/),
    ['OTHER_KEY', /is not the key of/, { ...TLS, NATS_CERT_FILE: 'CERT' }],
  ],
  NATS_INBOX_PREFIX: [
    ['_INBOX.*', /is not a subject without wildcards/, NATS],
    ['_INBOX_api', /has no effect without NATS_URL/],
  ],
  NATS_REPLICAS: [
    ['2', /is none of 1, 3, 5/, NATS],
    ['7', /not a whole number from 1 to 5/, NATS],
    ['3', /has no effect without NATS_URL/],
  ],
  REDIS_URL: [
    ['http://127.0.0.1', /is not a redis:\/\/ or rediss:\/\/ address/],
    ['redis://:hunter2@', /^REDIS_URL: …@ is not a/],
  ],
  REDIS_USER: [
    ['bss', /has no effect without REDIS_URL/],
    ['bss', /^REDIS_PASSWORD: needed beside REDIS_USER/, REDIS],
  ],
  REDIS_PASSWORD: [
    [STRONG, /has no effect without REDIS_URL/],
    [STRONG, /REDIS_URL has one already/, { REDIS_URL: 'redis://:other@127.0.0.1' }],
    weak(REDIS, 'aaaaaaaaaaaa', /the same few characters/),
  ],
  REDIS_PASSWORD_FILE: secretFile('REDIS_PASSWORD'),
  REDIS_CA_FILE: [
    ...file(REDISS, /has no certificate in PEM/),
    ['CERT', /has no effect without rediss:\/\/ in REDIS_URL/, REDIS],
  ],
  REDIS_CERT_FILE: file({ ...REDISS, REDIS_KEY_FILE: 'KEY' }, /has no certificate in PEM/),
  REDIS_KEY_FILE: file({ ...REDISS, REDIS_CERT_FILE: 'CERT' }, /has no private key/),
  ROLES: [
    ['api,cook', /cook is none of api, projector/],
    ['api,', /is none of/],
  ],
  BROWSERS: [['firefox', /is none of docker, kubernetes, process, simulated/]],
  WEBHOOKS_ALLOW_PRIVATE: [['perhaps', /is none of yes, no/]],
  ALLOW_UNISOLATED: [['perhaps', /is none of yes, no/]],
  DOCKER_HOST: [
    ['docker.sock', /is neither unix:\/\/\/path nor tcp/, DOCKER],
    ['ssh://host', /is neither/, DOCKER],
  ],
  DOCKER_NETWORK: [['a/b', /is not a valid network name/, DOCKER]],
  DOCKER_PUBLISH: [
    ['browsers.example', /is not the address of a host/, DOCKER],
    ['0.0.0.0', /is not the address/, DOCKER],
  ],
  DOCKER_DNS: [['dns.example', /is not an IPv4 address/, DOCKER]],
  DOCKER_ISOLATION: [['none', /is none of required, best-effort/, DOCKER]],
  DOCKER_ON_SHUTDOWN: [['keep', /is none of stop, leave/, DOCKER]],
  BROWSER_IMAGE: [['', /needs an image that its nodes can pull/, { BROWSERS: 'kubernetes' }]],
  KUBECONFIG: [
    ['/nowhere/at/all', /cannot be read \(ENOENT\)/, PODS],
    ['/tmp', /cannot be read \(EISDIR\)/, PODS],
  ],
  KUBERNETES_NAMESPACE: [['Browsers', /is not the name of a namespace/, PODS]],
  KUBERNETES_ISOLATION: [['none', /is none of required, best-effort/, PODS]],
  KUBERNETES_SECCOMP: [['/etc/profile.json', /is not the path of a profile below/, PODS]],
  KUBERNETES_RUNTIME_CLASS: [['g Visor', /is not the name of a RuntimeClass/, PODS]],
  KUBERNETES_USER_NAMESPACES: [['perhaps', /is none of yes, no/, PODS]],
  KUBERNETES_DNS: [['dns.example', /is not an IP address/, PODS]],
  KUBERNETES_OWNER: [['Owner 1', /is not the name of a ConfigMap/, PODS]],
  KUBERNETES_POD: [
    ['{', /is not JSON/, PODS],
    ['[]', /is not a JSON object/, PODS],
    ['{"hostNetwork":true}', /hostNetwork is none of nodeSelector, tolerations/, PODS],
  ],
  KUBERNETES_LAUNCH_TIMEOUT: [['soon', /is not like 500ms/, PODS]],
  KUBERNETES_LAUNCHES: [['0', /not a whole number from 1/, PODS]],
  KUBERNETES_ON_SHUTDOWN: [['keep', /is none of stop, leave/, PODS]],
  BROWSER_MEMORY_REQUEST_MB: [
    ['1', /not a whole number from 64/, PODS],
    ['4096', /is more than BROWSER_MEMORY_MB/, PODS],
  ],
  BROWSER_CPUS_REQUEST: [
    ['few', /is not from 0\.01 to 1024/, PODS],
    ['3', /is more than BROWSER_CPUS/, PODS],
  ],
  BROWSER_IMAGE_REBUILD: [
    ['weekly', /is not like 500ms/, DOCKER],
    ['30m', /is less than 1h/, DOCKER],
  ],
  OBJECT_STORE: [
    ['/var/objects', /is neither jetstream nor like s3:/],
    ['s3://', /is not like s3:\/\/bucket/],
  ],
  OBJECT_SWEEP_EVERY: duration,
  PROFILE_REPLACED_KEPT: duration,
  OBJECT_STORE_MAX_MB: [
    ['8G', /not a whole number/],
    ['10', /not a whole number from 64/],
  ],
  OBJECT_STORE_ORGANIZATION_MAX_MB: [['a third', /not a whole number/]],
  BROWSER_MEMORY_MB: [
    ['2G', /not a whole number/, DOCKER],
    ['100', /not a whole number from 192/, DOCKER],
  ],
  BROWSER_CPUS: [
    ['two', /is not from 0\.1 to 1024/, DOCKER],
    ['0', /is not from/, DOCKER],
  ],
  BROWSER_PIDS: [['1', /not a whole number from 64/, DOCKER]],
  SIMULATED_LAUNCH_MS: wait,
  SIMULATED_FAIL_RATE: [
    ['half', /is not from 0 to 1/],
    ['1.5', /is not from/],
  ],
  POOL_MIN_IDLE: [...count, ['9', /is more than POOL_MAX/]],
  POOL_MAX_IDLE: count,
  POOL_MAX: [...count, ['0', /not a whole number from 1/]],
  CREATE_WAIT: wait,
  QUEUE_AFTER: duration,
  QUEUE_TIMEOUT: duration,
  QUEUE_MAX: count,
  QUEUE_MAX_PER_ORGANIZATION: count,
  FILES_FILE_MAX: [
    ...bytes,
    ['2GB', /FILES_FILE_MAX: is more than FILES_SESSION_MAX/, { FILES_SESSION_MAX: '1GB' }],
  ],
  FILES_SESSION_MAX: bytes,
  FILES_RETAIN: duration,
  PROFILE_VERSIONS: count,
  PROFILE_MB_MAX: count,
  MAX_LIFETIME: [...duration, ['59s', /is less than 1m/]],
  TIERS: [
    ['free', /is not JSON/],
    ['[]', /is not a JSON object/],
    ['{"gold":{}}', /gold is none of/],
    ['{"free":{"requests":1}}', /free\.requests/],
    ['{"free":{"credits":-1}}', /free\.credits/],
  ],
  NATS_PORT: port,
  PUBLIC_NATS_URL: [['http://nats.example', /is not a nats/]],
  NATS_ISSUER_SEED: [['SAnothing', /is not the seed of an account key/]],
  NATS_ISSUER_SEED_FILE: secretFile('NATS_ISSUER_SEED'),
  TENANT_CONNECTIONS_PER_KEY: [...count, ['0', /not a whole number/]],
  EVENT_STREAMS_MAX: [...count, ['0', /not a whole number/]],
  EVENT_STREAMS_PER_ORGANIZATION: [...count, ['0', /not a whole number/]],
  DEV_API_KEY: [
    ['short', /needs 16 to 512 printable characters/],
    weak({}, 'bss_dev_changeme-changeme', /contains a placeholder word/),
    weak({}, 'bss_dev_0123456', /15 characters; 24 are needed/),
  ],
  DEV_API_KEY_FILE: secretFile('DEV_API_KEY'),
  MASTER_KEY: [
    [`${STRONG} ${STRONG}`, /a key is given twice/],
    [[1, 2, 3, 4, 5, 6].map((n) => `${STRONG}${n}`).join(' '), /more than 5/],
    ['short', /needs 32 to 512 printable characters/],
    ['a key with spaces in it, that is long enough', /without spaces/],
    weak({}, 'x'.repeat(32), /repeats the same few characters/),
    weak({}, 'abababababbaabababbabababbababab', /only 2 different characters/),
    ['x'.repeat(32), /too weak for production/, { NATS_URL: 'nats://nats-1:4222' }],
  ],
  MASTER_KEY_FILE: secretFile('MASTER_KEY'),
  JWT_SECRET: [
    ['short', /needs 32 to 512/, WHO],
    [STRONG, /not together with JWT_JWKS_URL/, { ...WHO, ...JWKS }],
    weak(WHO, 'the-secret-of-the-issuer-is-long-enough', /contains a placeholder word/),
  ],
  JWT_SECRET_FILE: secretFile('JWT_SECRET'),
  JWT_JWKS_URL: [
    ['login.example', /has to be an https:\/\/ or http:\/\/ address/, WHO],
    ['https://user:hunter2@login.example', /without a user/, WHO],
  ],
  JWT_ALGORITHMS: [
    ['HS256', /is none of/, { ...WHO, ...JWKS }],
    ['RS256', /only with JWT_JWKS_URL/],
  ],
  JWT_ISSUER: [
    ['', /needed beside JWT_JWKS_URL/, JWKS],
    ['i', /has no effect without/],
  ],
  JWT_AUDIENCE: [
    ['', /needed beside JWT_SECRET/, { JWT_ISSUER: 'i', JWT_SECRET: STRONG }],
    ['a', /has no effect without/],
  ],
  METRICS_PORT: port,
  METRICS_TOKEN: [
    ['short', /needs 16 to 512/],
    weak({}, 'metrics-password-1', /contains a placeholder word/),
  ],
  METRICS_TOKEN_FILE: secretFile('METRICS_TOKEN'),
  OPERATOR_PORT: port,
  OPERATOR_TOKEN: [
    ['short', /needs 16 to 512/],
    weak({}, 'operator-password-1', /contains a placeholder word/),
  ],
  OPERATOR_TOKEN_FILE: secretFile('OPERATOR_TOKEN'),
  OTEL_EXPORTER_OTLP_ENDPOINT: [['collector:4318', /is not a http:\/\/ or https:\/\/ address/]],
  NODE_ENV: ANY,
  LOG_LEVEL: [['loud', /is none of trace, debug/]],
};

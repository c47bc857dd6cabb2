import type { ObjectsConfig } from './objects.ts';
import { readText } from './secrets.ts';
import { readCertificate, readPair } from './tls.ts';
import {
  BadConfig,
  integer,
  matching,
  optional,
  text,
  url,
  type Form,
  type Values,
  variable,
} from './parse.ts';

/** TLS to a server: PEM files. Empty: the authorities of the system, no client certificate. */
export type ServerTls = { caFile?: string; certFile?: string; keyFile?: string };

/** How to connect to the event store and the read model. */
export type StoresConfig = {
  /** Includes user and password, if any; null: embedded. */
  natsUrl: string | null;
  redisUrl: string | null;
  nats: {
    /** A `.creds` file, in place of a user. */
    credsFile: string | null;
    tls: ServerTls | null;
    /** Prefix of reply subjects; null: `_INBOX_<user>`, or `_INBOX` without a user. */
    inboxPrefix: string | null;
    /** Replicas of each new stream; null: 3 in a cluster, else 1. */
    replicas: number | null;
  };
  redisTls: ServerTls | null;
};

const oneAddress = url('nats:', 'tls:');

/** Several servers of a cluster: all plain, or all with TLS. null: none. */
const natsAddresses: Form<string | null> = {
  says: '',
  parse(given, name) {
    if (given === '') return null;
    const parts = given.split(',').map((part) => part.trim());
    if (parts.includes('')) throw new BadConfig(`${name}: an address between commas is empty`);
    const addresses = parts.map((part) => oneAddress.parse(part, name));
    if (new Set(addresses.map((address) => URL.parse(address)?.protocol)).size > 1)
      throw new BadConfig(
        `${name}: nats:// and tls:// are mixed; a connection is one or the other`,
      );
    return addresses.join(',');
  },
};

const subject = matching(
  (given) => /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/.test(given) && given.length <= 128,
  'is not a subject without wildcards',
);

export const storesVariables = {
  NATS_URL: variable(
    natsAddresses,
    '',
    'nats:// or tls://host:port, several with commas; empty: an embedded nats-server',
  ),
  NATS_USER: variable(text, '', 'user at NATS_URL, with NATS_PASSWORD'),
  NATS_PASSWORD: variable(text, '', 'password of NATS_USER'),
  NATS_CREDS_FILE: variable(text, '', '.creds file (JWT and seed), in place of NATS_USER'),
  NATS_CA_FILE: variable(text, '', 'authority of NATS’ certificate, PEM; empty: the system’s'),
  NATS_CERT_FILE: variable(text, '', 'client certificate for NATS, PEM'),
  NATS_KEY_FILE: variable(text, '', 'key of NATS_CERT_FILE, PEM'),
  NATS_INBOX_PREFIX: variable(
    optional(subject),
    '',
    'prefix of NATS inboxes; empty: _INBOX_ with NATS_USER',
  ),
  NATS_REPLICAS: variable(
    optional(integer(1, 5)),
    '',
    'replicas of new streams: 1, 3 or 5; empty: 3 in a cluster, else 1',
  ),
  REDIS_URL: variable(
    optional(url('redis:', 'rediss:')),
    '',
    'redis:// or rediss://host:port; empty: an embedded redis-server',
  ),
  REDIS_USER: variable(text, '', 'user at REDIS_URL, with REDIS_PASSWORD; empty: default'),
  REDIS_PASSWORD: variable(text, '', 'password at REDIS_URL'),
  REDIS_CA_FILE: variable(text, '', 'authority of Redis’ certificate, PEM; empty: the system’s'),
  REDIS_CERT_FILE: variable(text, '', 'client certificate for Redis, PEM'),
  REDIS_KEY_FILE: variable(text, '', 'key of REDIS_CERT_FILE, PEM'),
} as const;
type Given = Values<typeof storesVariables>;

/** @throws BadConfig naming the variable that is wrong; no message has a password */
export function readStores(values: Given): StoresConfig {
  const { NATS_URL: natsUrl, REDIS_URL: redisUrl } = values;
  refuseUseless('NATS_', natsUrl, values);
  refuseUseless('REDIS_', redisUrl, values);
  const { NATS_REPLICAS: replicas } = values;
  if (replicas !== null && replicas % 2 === 0)
    throw new BadConfig(`NATS_REPLICAS: ${replicas} is none of 1, 3, 5`);
  const natsIsSecure = natsUrl?.startsWith('tls:') ?? false;
  const redisIsSecure = redisUrl?.startsWith('rediss:') ?? false;
  return {
    natsUrl: natsUrl === null ? null : withNatsUser(natsUrl, values),
    redisUrl: redisUrl === null ? null : withRedisUser(redisUrl, values),
    nats: {
      credsFile: readCreds(natsUrl, values),
      tls: readTls('NATS', natsIsSecure, values),
      inboxPrefix: values.NATS_INBOX_PREFIX,
      replicas,
    },
    redisTls: readTls('REDIS', redisIsSecure, values),
  };
}

/** Refuses variables of a server whose URL is not set. */
function refuseUseless(prefix: 'NATS_' | 'REDIS_', address: string | null, values: Given): void {
  if (address !== null) return;
  for (const name of Object.keys(storesVariables) as (keyof Given)[])
    if (name.startsWith(prefix) && (values[name] ?? '') !== '')
      throw new BadConfig(`${name}: has no effect without ${prefix}URL`);
}

function withNatsUser(address: string, values: Given): string {
  const { NATS_USER: user, NATS_PASSWORD: password } = values;
  if (user === '' && password === '') return address;
  if (user === '') throw new BadConfig('NATS_USER: needed beside NATS_PASSWORD');
  if (password === '') throw new BadConfig('NATS_PASSWORD: needed beside NATS_USER');
  if (address.includes('@')) throw new BadConfig('NATS_USER: NATS_URL has a user already');
  const login = `${encodeURIComponent(user)}:${encodeURIComponent(password)}@`;
  return address.replaceAll('://', `://${login}`);
}

function withRedisUser(address: string, values: Given): string {
  const { REDIS_USER: user, REDIS_PASSWORD: password } = values;
  if (user !== '' && password === '')
    throw new BadConfig('REDIS_PASSWORD: needed beside REDIS_USER');
  if (password === '') return address;
  if (address.includes('@')) throw new BadConfig('REDIS_PASSWORD: REDIS_URL has one already');
  const login = `${encodeURIComponent(user)}:${encodeURIComponent(password)}@`;
  return address.replace('://', `://${login}`);
}

function readCreds(address: string | null, values: Given): string | null {
  const { NATS_CREDS_FILE: path } = values;
  if (path === '') return null;
  if (values.NATS_USER !== '' || (address ?? '').includes('@'))
    throw new BadConfig('NATS_CREDS_FILE: not together with a user; set one of them');
  const creds = readText('NATS_CREDS_FILE', path);
  if (!/BEGIN NATS USER JWT[^]*BEGIN USER NKEY SEED/.test(creds))
    throw new BadConfig(`NATS_CREDS_FILE: ${path} has no JWT with its seed`);
  return path;
}

function readTls(of: 'NATS' | 'REDIS', isSecure: boolean, values: Given): ServerTls | null {
  const caFile = values[`${of}_CA_FILE`];
  if (caFile !== '') readCertificate(`${of}_CA_FILE`, caFile);
  const ours = readPair(`${of}_CERT_FILE`, `${of}_KEY_FILE`, values);
  if (isSecure) return { ...(caFile === '' ? {} : { caFile }), ...ours };
  const given = caFile === '' ? `${of}_CERT_FILE` : `${of}_CA_FILE`;
  if (caFile !== '' || ours !== null)
    throw new BadConfig(
      `${given}: has no effect without ${of === 'NATS' ? 'tls' : 'rediss'}:// in ${of}_URL`,
    );
  return null;
}

/** Connection options of NATS from the configuration, apart from the address. */
export function natsAccess({ nats, objects }: StoresConfig & { objects: ObjectsConfig }) {
  const { credsFile, tls, inboxPrefix, replicas } = nats;
  return {
    objectsMaxBytes: objects.maxBytes,
    ...(credsFile === null ? {} : { credsFile }),
    ...(tls === null ? {} : { tls }),
    ...(inboxPrefix === null ? {} : { inboxPrefix }),
    ...(replicas === null ? {} : { replicas }),
  };
}

/** The same of Redis. */
export function redisAccess({ redisTls }: StoresConfig) {
  return redisTls === null ? {} : { tls: redisTls };
}

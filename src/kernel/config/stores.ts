import type { ObjectsConfig } from './objects.ts';
import { readText } from './secrets.ts';
import { readCertificate, readPair } from './tls.ts';
import { BadConfig, integer, url, type Read } from './parse.ts';

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

export const storesVariables = {
  NATS_URL: {
    fallback: '',
    meaning: 'nats:// or tls://host:port, several with commas; empty: an embedded nats-server',
  },
  NATS_USER: { fallback: '', meaning: 'user at NATS_URL, with NATS_PASSWORD' },
  NATS_PASSWORD: { fallback: '', meaning: 'password of NATS_USER' },
  NATS_CREDS_FILE: {
    fallback: '',
    meaning: '.creds file (JWT and seed), in place of NATS_USER',
  },
  NATS_CA_FILE: {
    fallback: '',
    meaning: 'authority of NATS’ certificate, PEM; empty: the system’s',
  },
  NATS_CERT_FILE: { fallback: '', meaning: 'client certificate for NATS, PEM' },
  NATS_KEY_FILE: { fallback: '', meaning: 'key of NATS_CERT_FILE, PEM' },
  NATS_INBOX_PREFIX: {
    fallback: '',
    meaning: 'prefix of NATS inboxes; empty: _INBOX_ with NATS_USER',
  },
  NATS_REPLICAS: {
    fallback: '',
    meaning: 'replicas of new streams: 1, 3 or 5; empty: 3 in a cluster, else 1',
  },
  REDIS_URL: {
    fallback: '',
    meaning: 'redis:// or rediss://host:port; empty: an embedded redis-server',
  },
  REDIS_USER: { fallback: '', meaning: 'user at REDIS_URL, with REDIS_PASSWORD; empty: default' },
  REDIS_PASSWORD: { fallback: '', meaning: 'password at REDIS_URL' },
  REDIS_CA_FILE: {
    fallback: '',
    meaning: 'authority of Redis’ certificate, PEM; empty: the system’s',
  },
  REDIS_CERT_FILE: { fallback: '', meaning: 'client certificate for Redis, PEM' },
  REDIS_KEY_FILE: { fallback: '', meaning: 'key of REDIS_CERT_FILE, PEM' },
} as const;
type Name = keyof typeof storesVariables;

/** @throws BadConfig naming the variable that is wrong; no message has a password */
export function readStores(read: Read<Name>): StoresConfig {
  const natsUrl = readNatsUrl(read);
  const redisUrl = url('REDIS_URL', read, ['redis:', 'rediss:']);
  refuseUseless('NATS_', natsUrl, read);
  refuseUseless('REDIS_', redisUrl, read);
  const replicas = read('NATS_REPLICAS') === '' ? null : integer('NATS_REPLICAS', read, 1, 5);
  if (replicas !== null && replicas % 2 === 0)
    throw new BadConfig(`NATS_REPLICAS: ${replicas} is none of 1, 3, 5`);
  const natsIsSecure = natsUrl?.startsWith('tls:') ?? false;
  const redisIsSecure = redisUrl?.startsWith('rediss:') ?? false;
  return {
    natsUrl: natsUrl === null ? null : withNatsUser(natsUrl, read),
    redisUrl: redisUrl === null ? null : withRedisUser(redisUrl, read),
    nats: {
      credsFile: readCreds(natsUrl, read),
      tls: readTls('NATS', natsIsSecure, read),
      inboxPrefix: readInboxPrefix(read('NATS_INBOX_PREFIX')),
      replicas,
    },
    redisTls: readTls('REDIS', redisIsSecure, read),
  };
}

/** Several servers of a cluster: all plain, or all with TLS. */
function readNatsUrl(read: Read<Name>): string | null {
  if (read('NATS_URL') === '') return null;
  const addresses = read('NATS_URL')
    .split(',')
    .map((part) => url('NATS_URL', () => part.trim(), ['nats:', 'tls:']) ?? '');
  if (addresses.includes('')) throw new BadConfig('NATS_URL: an address between commas is empty');
  if (new Set(addresses.map((address) => URL.parse(address)?.protocol)).size > 1)
    throw new BadConfig('NATS_URL: nats:// and tls:// are mixed; a connection is one or the other');
  return addresses.join(',');
}

/** Refuses variables of a server whose URL is not set. */
function refuseUseless(prefix: 'NATS_' | 'REDIS_', address: string | null, read: Read<Name>): void {
  if (address !== null) return;
  for (const name of Object.keys(storesVariables) as Name[])
    if (name.startsWith(prefix) && read(name) !== '')
      throw new BadConfig(`${name}: has no effect without ${prefix}URL`);
}

function withNatsUser(address: string, read: Read<Name>): string {
  const [user, password] = [read('NATS_USER'), read('NATS_PASSWORD')];
  if (user === '' && password === '') return address;
  if (user === '') throw new BadConfig('NATS_USER: needed beside NATS_PASSWORD');
  if (password === '') throw new BadConfig('NATS_PASSWORD: needed beside NATS_USER');
  if (address.includes('@')) throw new BadConfig('NATS_USER: NATS_URL has a user already');
  const login = `${encodeURIComponent(user)}:${encodeURIComponent(password)}@`;
  return address.replaceAll('://', `://${login}`);
}

function withRedisUser(address: string, read: Read<Name>): string {
  const [user, password] = [read('REDIS_USER'), read('REDIS_PASSWORD')];
  if (user !== '' && password === '')
    throw new BadConfig('REDIS_PASSWORD: needed beside REDIS_USER');
  if (password === '') return address;
  if (address.includes('@')) throw new BadConfig('REDIS_PASSWORD: REDIS_URL has one already');
  const login = `${encodeURIComponent(user)}:${encodeURIComponent(password)}@`;
  return address.replace('://', `://${login}`);
}

function readCreds(address: string | null, read: Read<Name>): string | null {
  const path = read('NATS_CREDS_FILE');
  if (path === '') return null;
  if (read('NATS_USER') !== '' || (address ?? '').includes('@'))
    throw new BadConfig('NATS_CREDS_FILE: not together with a user; set one of them');
  const text = readText('NATS_CREDS_FILE', path);
  if (!/BEGIN NATS USER JWT[^]*BEGIN USER NKEY SEED/.test(text))
    throw new BadConfig(`NATS_CREDS_FILE: ${path} has no JWT with its seed`);
  return path;
}

function readTls(of: 'NATS' | 'REDIS', isSecure: boolean, read: Read<Name>): ServerTls | null {
  const caFile = read(`${of}_CA_FILE`);
  if (caFile !== '') readCertificate(`${of}_CA_FILE`, caFile);
  const ours = readPair(`${of}_CERT_FILE`, `${of}_KEY_FILE`, read);
  if (isSecure) return { ...(caFile === '' ? {} : { caFile }), ...ours };
  const given = caFile === '' ? `${of}_CERT_FILE` : `${of}_CA_FILE`;
  if (caFile !== '' || ours !== null)
    throw new BadConfig(
      `${given}: has no effect without ${of === 'NATS' ? 'tls' : 'rediss'}:// in ${of}_URL`,
    );
  return null;
}

function readInboxPrefix(text: string): string | null {
  if (text === '') return null;
  if (!/^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/.test(text) || text.length > 128)
    throw new BadConfig(`NATS_INBOX_PREFIX: ${text} is not a subject without wildcards`);
  return text;
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

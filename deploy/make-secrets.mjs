/**
 * Makes the secrets that compose.yaml names, in the given folder, each where it is missing: to rotate
 * one is to remove its file and run this again (README.md). Run by up.sh in the service's image.
 * The folder is for its owner alone; the files in it are for everybody, since each container has
 * another user and gets only its own of them.
 */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { generate } from 'selfsigned';

const DAY_MS = 24 * 60 * 60 * 1000;
const INSIDE_NAMES = ['nats', 'nats-1', 'nats-2', 'nats-3', 'redis', 'localhost'];
const NATS_USERS = [
  'api',
  'projector',
  'provisioner',
  'gateway',
  'timekeeper',
  'archivist',
  'operator',
  'service',
  'route',
];

const [folder, publicHost = 'localhost'] = process.argv.slice(2);
if (folder === undefined) throw new Error('usage: make-secrets.mjs FOLDER [PUBLIC-HOST]');
await mkdir(folder, { recursive: true });
await chmod(folder, 0o700);

await kept('master_key', () => randomBytes(36).toString('base64url'));
await kept('metrics_token', () => randomBytes(24).toString('base64url'));
const redis = await kept('redis', () => randomBytes(24).toString('hex'));
const lines = [];
for (const user of NATS_USERS) {
  // It begins with a letter: NATS reads it as a word of its configuration.
  const password = await kept(`nats_${user}`, () => `n${randomBytes(24).toString('hex')}`);
  lines.push(`NATS_${user.toUpperCase()}_PASSWORD=${password}`);
  if (user === 'route') {
    const routes = [1, 2, 3].map((one) => `nats-route://route:${password}@nats-${one}:6222`);
    lines.push(`NATS_ROUTES=[${routes.join(', ')}]`);
  }
}
await written('nats.env', `${lines.join('\n')}\n`);
await written('redis.conf', redisConf(redis));
await keptPair('inside', INSIDE_NAMES);
await keptPair('edge', [publicHost]);

async function kept(name, make) {
  const path = join(folder, name);
  try {
    await using file = await open(path, 'wx', 0o444);
    await file.writeFile(`${make()}\n`);
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  await chmod(path, 0o444);
  return (await readFile(path, 'utf8')).trim();
}

async function written(name, text) {
  const path = join(folder, name);
  await chmod(path, 0o644).catch(() => undefined);
  await writeFile(path, text);
  await chmod(path, 0o444);
}

/** A certificate that signs itself, for a year; `edge` is to be replaced by one that clients know. */
async function keptPair(name, names) {
  let made = null;
  const pair = async (part) => {
    made ??= await generate([{ name: 'commonName', value: names[0] }], certificate(names));
    return made[part];
  };
  const isThere = await readFile(join(folder, `${name}.pem`), 'utf8').catch(() => '');
  if (isThere !== '') return;
  const [key, cert] = [await pair('private'), await pair('cert')];
  await written(`${name}.key`, key);
  await written(`${name}.pem`, cert);
}

function isAddress(name) {
  return /^[\d.]+$|:/.test(name);
}

function certificate(names) {
  return {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate: new Date(Date.now() - DAY_MS),
    notAfterDate: new Date(Date.now() + 397 * DAY_MS),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', digitalSignature: true, keyCertSign: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
      {
        name: 'subjectAltName',
        altNames: names.map((name) =>
          isAddress(name) ? { type: 7, ip: name } : { type: 2, value: name },
        ),
      },
    ],
  };
}

/** What it holds can be folded again: snapshots are enough, and nothing may be evicted. */
function redisConf(password) {
  return [
    'port 0',
    'tls-port 6379',
    'tls-cert-file /run/secrets/inside_pem',
    'tls-key-file /run/secrets/inside_key',
    'tls-ca-cert-file /run/secrets/inside_pem',
    'tls-auth-clients no',
    `requirepass ${password}`,
    'maxmemory-policy noeviction',
    'dir /data',
    'save 60 1000',
    'appendonly no',
    'stop-writes-on-bgsave-error no',
    '',
  ].join('\n');
}

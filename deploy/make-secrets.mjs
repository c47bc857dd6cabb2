/**
 * Makes the secrets that compose.yaml and the chart (helm) name, in the given folder, each where it
 * is missing: to rotate one is to remove its file and run this again (README.md). Certificates are
 * renewed before they end (make-certificates.mjs); what that asks for is printed, a word a line:
 * `trust`, `inside`, `edge`. It is printed again until the file `pending-<word>` is removed.
 * Run by up.sh in the service's image.
 * The folder is for its owner alone; the files in it are for everybody, since each container has
 * another user and gets only its own of them.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { keepEdge, keepInside } from './make-certificates.mjs';

const INSIDE_NAMES = ['nats', 'nats-1', 'nats-2', 'nats-3', 'redis', 'localhost'];
const NATS_USERS = [
  'api',
  'projector',
  'provisioner',
  'gateway',
  'timekeeper',
  'archivist',
  'webhooks',
  'operator',
  'service',
  'route',
];

const [folder, publicHost = 'localhost', ...insideNames] = process.argv.slice(2);
if (folder === undefined)
  throw new Error('usage: make-secrets.mjs FOLDER [PUBLIC-HOST [INSIDE-NAME...]]');
await mkdir(folder, { recursive: true });
await chmod(folder, 0o700);

await kept('master_key', () => randomBytes(36).toString('base64url'));
await kept('metrics_token', () => randomBytes(24).toString('base64url'));
await kept('audit_key', signingKey);
// Of the archive, for the chart: in compose the archivist's volume keeps the key.
await kept('archive_key', signingKey);
await kept('operator_token', () => randomBytes(24).toString('base64url'));
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
// The edge first: its refusal leaves the others' as they are.
const edge = await keepEdge(folder, publicHost);
const names = insideNames.length === 0 ? INSIDE_NAMES : insideNames;
const changed = [...(await keepInside(folder, names)), ...edge];
process.stdout.write(changed.map((one) => `${one}\n`).join(''));

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

/** Signs what the API exports, or the archive: an Ed25519 key as a JWK. */
function signingKey() {
  return JSON.stringify(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }));
}

/** What it holds can be folded again: snapshots are enough, and nothing may be evicted. */
function redisConf(password) {
  return [
    'port 0',
    'tls-port 6379',
    'tls-cert-file /run/secrets/inside_pem',
    'tls-key-file /run/secrets/inside_key',
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

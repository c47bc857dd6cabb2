/**
 * Keeps the Secret of a Helm release: makes the keys, passwords and certificates that are missing
 * (make-secrets.mjs), renews certificates that end, and stores all of it as one Secret.
 *   node kubernetes-secrets.mjs SECRET PUBLIC-HOST INSIDE-NAME...
 * Run as a hook before each install and upgrade, by a service account that may create Secrets, and
 * read and change this one.
 */
import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ask, namespace } from './kubernetes-api.mjs';

const MAKE_SECRETS = fileURLToPath(new URL('make-secrets.mjs', import.meta.url));

const [name, publicHost, ...insideNames] = process.argv.slice(2);
if (insideNames.length === 0)
  throw new Error('usage: kubernetes-secrets.mjs SECRET PUBLIC-HOST INSIDE-NAME...');
const secrets = `/api/v1/namespaces/${namespace}/secrets`;

const folder = await mkdtemp(join(tmpdir(), 'secrets-'));
const before = await ask('GET', `${secrets}/${name}`);
for (const [file, value] of Object.entries(before?.data ?? {}))
  await writeFile(join(folder, file), Buffer.from(value, 'base64'));
const pending = execFileSync(process.execPath, [MAKE_SECRETS, folder, publicHost, ...insideNames], {
  encoding: 'utf8',
});
const data = {};
for (const file of await readdir(folder)) {
  const content = await readFile(join(folder, file));
  // KEDA sends the token as it stands: with its line break that would be no header.
  const stored = file === 'metrics_token' ? Buffer.from(content.toString().trim()) : content;
  data[file] = stored.toString('base64');
}
const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name }, data };
if (before === null) await ask('POST', secrets, body);
else await ask('PUT', `${secrets}/${name}`, { ...before, data });
const told = pending.split('\n').filter(Boolean);
if (before !== null && told.length > 0)
  process.stdout.write(`running Pods have to be restarted for: ${told.join(', ')}\n`);

/**
 * The end of a provisioner's Pod. One that restarts ends at once: its browsers go on running, and the
 * next Pod of its name finds them. One that is scaled away drains first: it takes no request any
 * more, and ends when its sessions have, or after the given time.
 *   node kubernetes-drain.mjs STATEFULSET SECONDS
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { ask, namespace } from './kubernetes-api.mjs';

const { SERVER_ID: server = '' } = process.env;
const [name, seconds] = process.argv.slice(2);
if (seconds === undefined) throw new Error('usage: kubernetes-drain.mjs STATEFULSET SECONDS');

const set = await ask('GET', `/apis/apps/v1/namespaces/${namespace}/statefulsets/${name}`);
// The release is uninstalled, browsers included, or a StatefulSet of the name comes back to them.
const isDeleted = set === null || set.metadata.deletionTimestamp !== undefined;
const ordinal = Number(server.slice(server.lastIndexOf('-') + 1));
if (!isDeleted && ordinal >= set.spec.replicas) await drain();

async function drain() {
  const bss = spawn('bss', ['servers', 'drain', server, '--wait'], { stdio: 'inherit' });
  const late = setTimeout(() => bss.kill('SIGTERM'), Number(seconds) * 1000);
  await once(bss, 'exit');
  clearTimeout(late);
}

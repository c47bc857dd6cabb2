/** promtool, Prometheus' own check of rules: found on this machine, or fetched. */
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCommand, type Outcome } from '#src/embedded/run-command.ts';
import { toolFolder, toolName } from '#src/embedded/tool-folder.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FETCHED = join(toolFolder(ROOT), toolName('promtool', 'debian'), 'promtool');
const FETCH_MS = 180_000;
const RUN_MS = 60_000;

/** Its path; null: it is neither here nor can be fetched. PROMTOOL names one that is elsewhere. */
export async function findPromtool(): Promise<string | null> {
  const onPath = (process.env['PATH'] ?? '').split(delimiter).map((folder) => `${folder}/promtool`);
  const known = [process.env['PROMTOOL'], FETCHED, ...onPath];
  for (const path of known) if (path && (await runs(path))) return path;
  return (await fetchPackage()) ? FETCHED : null;
}

async function runs(path: string): Promise<boolean> {
  return isDone(await runCommand([path, '--version'], { timeoutMs: RUN_MS }));
}

/**
 * Debian's package `prometheus` has promtool. It is unpacked and not installed: it would start a
 * server. False if apt has no such package, as on another system or without a network.
 */
async function fetchPackage(): Promise<boolean> {
  const tools = dirname(FETCHED);
  await mkdir(tools, { recursive: true });
  const folder = await mkdtemp(join(tools, 'fetch-'));
  try {
    const download = ['apt-get', '-qq', 'download', 'prometheus'];
    if (!isDone(await runCommand(download, { timeoutMs: FETCH_MS, cwd: folder }))) {
      // A fresh machine has no package lists yet.
      const root = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
      await runCommand([...root, 'apt-get', '-qq', 'update'], { timeoutMs: FETCH_MS });
      const again = await runCommand(download, { timeoutMs: FETCH_MS, cwd: folder });
      if (!isDone(again)) return false;
    }
    const unpack = ['sh', '-c', 'exec dpkg-deb -x ./prometheus_*.deb unpacked'];
    if (!isDone(await runCommand(unpack, { timeoutMs: FETCH_MS, cwd: folder }))) return false;
    await rename(join(folder, 'unpacked/usr/bin/promtool'), FETCHED);
    return true;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function isDone({ code }: Outcome): boolean {
  return code === 0;
}

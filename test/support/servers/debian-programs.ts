/** Programs of Debian packages that are found on this machine, or fetched and unpacked. */
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { basename, delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isAgreed } from '#src/start/embedded/install/consent.ts';
import { runCommand, type Outcome } from '#src/start/embedded/run-command.ts';
import { toolFolder, toolName } from '#src/start/embedded/install/tool-folder.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FETCH_MS = 180_000;
const RUN_MS = 60_000;

type Program = {
  /** The package, and the program's path in it. */
  from: string;
  path: string;
  /** Arguments with which it ends at once, and well. */
  asks: readonly string[];
};

const PROMTOOL = { from: 'prometheus', path: 'usr/bin/promtool', asks: ['--version'] };
/** In the version of deploy/nginx.Dockerfile, on Debian 12. */
const NGINX = { from: 'nginx', path: 'usr/sbin/nginx', asks: ['-v'] };

/** Prometheus' own check of rules; null: it is neither here nor can be fetched. */
export const findPromtool = () => findProgram(PROMTOOL);

/** The proxy of deploy/; null: it is neither here nor can be fetched. */
export const findNginx = () => findProgram(NGINX);

/** Its path. A variable with its name in capitals names one that is elsewhere. */
async function findProgram(program: Program): Promise<string | null> {
  const name = basename(program.path);
  const fetched = join(toolFolder(ROOT), toolName(name, 'debian'), name);
  const onPath = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, name));
  for (const path of [process.env[name.toUpperCase()], fetched, ...onPath])
    if (path && isDone(await runCommand([path, ...program.asks], { timeoutMs: RUN_MS })))
      return path;
  return (await fetchPackage(program, fetched)) ? fetched : null;
}

/**
 * The package is unpacked and not installed: it would start a server. False if apt has no such
 * package, as on another system or without a network.
 */
async function fetchPackage({ from, path }: Program, fetched: string): Promise<boolean> {
  const tools = dirname(fetched);
  await mkdir(tools, { recursive: true });
  const folder = await mkdtemp(join(tools, 'fetch-'));
  try {
    const download = ['apt-get', '-qq', 'download', from];
    if (!isDone(await runCommand(download, { timeoutMs: FETCH_MS, cwd: folder }))) {
      // A fresh machine has no package lists yet, and only root may fetch them.
      if (!isAgreed()) return false;
      const root = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
      await runCommand([...root, 'apt-get', '-qq', 'update'], { timeoutMs: FETCH_MS });
      const again = await runCommand(download, { timeoutMs: FETCH_MS, cwd: folder });
      if (!isDone(again)) return false;
    }
    const unpack = ['sh', '-c', `exec dpkg-deb -x ./${from}_*.deb unpacked`];
    if (!isDone(await runCommand(unpack, { timeoutMs: FETCH_MS, cwd: folder }))) return false;
    await rename(join(folder, 'unpacked', path), fetched);
    return true;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function isDone({ code }: Outcome): boolean {
  return code === 0;
}

import { constants } from 'node:fs';
import { access, readdir, readFile, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Config } from '#src/kernel/config/config.ts';
import {
  findProgram,
  MissingProgram,
  type ProgramName,
} from '#src/start/embedded/install/programs.ts';
import { assertPortsFree, PortTaken } from '#src/start/embedded/ports.ts';
import { parseVersion } from '#src/browsers/chromium/program-version.ts';
import { runCommand } from '#src/start/embedded/run-command.ts';
import type { HostFacts, ProgramFacts } from './facts.ts';

/** Chromium's `--version` takes 200 ms on an idle machine. */
const VERSION_MS = 10_000;
/** Files of the data folder that other users must not read. */
const SECRETS = ['master-key', 'dev-api-key', 'nats-issuer', 'runtime.json', 'audit-key'];

/**
 * Reads the state of this machine; changes nothing.
 * @param isRunning whether the service runs on this data folder, and so uses its ports
 */
export async function gatherHostFacts(config: Config, isRunning: boolean): Promise<HostFacts> {
  const { dataDir } = config;
  const place = await existing(dataDir);
  const { bavail, blocks, bsize } = await statfs(place);
  return {
    node: process.version,
    dataDir,
    unwritable: await whyUnwritable(place),
    freeBytes: bavail * bsize,
    totalBytes: blocks * bsize,
    openSecrets: await openSecretsIn(dataDir),
    openFilesMax: await openFilesMax(),
    ports: await Promise.all(portsOf(config).map((port) => useOf(port, isRunning))),
    browserPrograms: await browserPrograms(config),
  };
}

async function browserPrograms(config: Config): Promise<HostFacts['browserPrograms']> {
  if (config.browsers.kind !== 'process' || !config.roles.includes('provisioner')) return null;
  const [chromium, chromedriver] = await Promise.all([
    programOf('chromium'),
    programOf('chromedriver'),
  ]);
  return { chromium, chromedriver };
}

/** A variable that names no program is a fact, too. */
async function programOf(name: ProgramName): Promise<ProgramFacts> {
  try {
    const path = await findProgram(name);
    if (path === null) return { missing: `there is no ${name}` };
    const { code, output } = await runCommand([path, '--version'], { timeoutMs: VERSION_MS });
    return { path, version: code === 0 ? parseVersion(output) : null };
  } catch (error) {
    if (!(error instanceof MissingProgram)) throw error;
    return { missing: error.message };
  }
}

/** The folder, or its nearest existing parent. */
async function existing(path: string): Promise<string> {
  const isThere = await access(path).then(
    () => true,
    () => false,
  );
  return isThere || dirname(path) === path ? path : existing(dirname(path));
}

async function whyUnwritable(place: string): Promise<string | null> {
  try {
    await access(place, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

async function openSecretsIn(dataDir: string): Promise<string[]> {
  const names = await readdir(dataDir).catch(() => []);
  const modes = await Promise.all(
    names
      .filter((name) => SECRETS.includes(name))
      .map(async (name) => [name, (await stat(join(dataDir, name))).mode] as const),
  );
  return modes.filter(([, mode]) => (mode & 0o077) !== 0).map(([name]) => name);
}

/** null: unlimited, or not known. */
async function openFilesMax(): Promise<number | null> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? null : Number(soft);
}

type Port = { variable: string; host: string; port: number };

function portsOf({ roles, api: { host, port }, gateway }: Config): Port[] {
  return [
    ...(roles.includes('api') ? [{ variable: 'PORT', host, port }] : []),
    ...(roles.includes('gateway')
      ? [
          { variable: 'GATEWAY_PORT', host, port: gateway.port },
          { variable: 'GATEWAY_TLS_PORT', host, port: gateway.tlsPort },
        ]
      : []),
  ];
}

async function useOf(port: Port, isRunning: boolean): Promise<HostFacts['ports'][number]> {
  const { variable, port: number } = port;
  try {
    await assertPortsFree([port]);
    return { variable, port: number, use: 'free' };
  } catch (error) {
    if (!(error instanceof PortTaken)) throw error;
    return { variable, port: number, use: isRunning ? 'ours' : 'taken' };
  }
}

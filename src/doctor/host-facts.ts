import { constants } from 'node:fs';
import { access, readdir, readFile, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Config } from '#src/config/config.ts';
import { assertPortsFree, PortTaken } from '#src/embedded/ports.ts';
import type { HostFacts } from './facts.ts';

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
  };
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

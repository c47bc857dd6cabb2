/** Fetches a nats-server if the machine's is missing or too old. */
import { copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { aptArchives } from './apt.ts';
import { pinnedFor, verify } from './pinned.mjs';
import { lastLines, runCommand } from '../run-command.ts';

/** Where Debian keeps every version that it ever had, by day. */
const DEBIAN_SNAPSHOT = 'https://snapshot.debian.org/archive/debian/20261031T000000Z';
const RELEASES = 'https://github.com/nats-io/nats-server/releases/download';
const DOWNLOAD_TIMEOUT_MS = 120_000;
/** Node's names of architectures → those in the names of the files. */
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = {
  x64: 'amd64',
  arm64: 'arm64',
};

/**
 * Installs a nats-server for which `accepts` is true into a folder of its own, atomically. `print`
 * gets the address that each file is fetched from.
 * @throws Error whose message names each source and its failure
 */
export async function fetchNatsServer(
  folder: string,
  accepts: (path: string) => Promise<boolean>,
  print: (line: string) => void,
): Promise<void> {
  const refusals: string[] = [];
  const mirrors = (await aptArchives()).filter((archive) => /^https?:.*\/debian$/.test(archive));
  const debian = [...new Set([...mirrors, DEBIAN_SNAPSHOT])].map(debianSource);
  for (const source of [...debian, releaseSource(RELEASES)]) {
    const stage = `${folder}.new`;
    await rm(stage, { recursive: true, force: true });
    await mkdir(join(stage, 'work'), { recursive: true });
    try {
      print(`  ${source.name} into ${folder}, if its checksum is right`);
      const binary = join(stage, 'nats-server');
      await copyFile(await source.unpack(join(stage, 'work')), binary);
      if (!(await accepts(binary)))
        throw new Error('it does not run on this machine, or is too old');
      await rm(join(stage, 'work'), { recursive: true });
      await rm(folder, { recursive: true, force: true });
      await rename(stage, folder);
      return;
    } catch (error) {
      refusals.push(`${source.name}: ${reasonOf(error)}`);
    } finally {
      await rm(stage, { recursive: true, force: true });
    }
  }
  throw new Error(refusals.join('; '));
}

type Source = { name: string; unpack: (dir: string) => Promise<string> };

/** Debian's package from an archive; it is unpacked and not installed, which needs no root. */
export function debianSource(archive: string): Source {
  const architecture = ARCHITECTURES[process.arch];
  return {
    name: `${archive}/pool/main/n/nats-server`,
    unpack: async (dir) => {
      const { version, sha256 } = pinnedFor('nats-server.deb');
      const file = `nats-server_${version}_${architecture}.deb`;
      await fetchVerified(`${archive}/pool/main/n/nats-server/${file}`, sha256, join(dir, file));
      await mustRun(['dpkg-deb', '-x', `./${file}`, 'unpacked'], dir);
      return join(dir, 'unpacked/usr/sbin/nats-server');
    },
  };
}

/** An archive of NATS' own releases. */
export function releaseSource(releases: string): Source {
  return {
    name: releases,
    unpack: async (dir) => {
      const { version, sha256 } = pinnedFor('nats-server.tar.gz');
      const name = `nats-server-v${version}-${process.platform}-${ARCHITECTURES[process.arch]}`;
      const file = `${name}.tar.gz`;
      await fetchVerified(`${releases}/v${version}/${file}`, sha256, join(dir, file));
      await mustRun(['tar', '-xzf', file], dir);
      return join(dir, name, 'nats-server');
    },
  };
}

/** Writes what the address answers. @throws Error before anything is written, if it is not that */
async function fetchVerified(url: string, sha256: string, path: string): Promise<void> {
  const response = await fetch(url, { signal: AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  const bytes = Buffer.from(await response.arrayBuffer());
  verify(bytes, sha256, url);
  await writeFile(path, bytes);
}

async function mustRun(command: readonly string[], cwd: string): Promise<void> {
  const outcome = await runCommand(command, { timeoutMs: DOWNLOAD_TIMEOUT_MS, cwd });
  if (outcome.code !== 0) throw new Error(lastLines(outcome.output));
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // fetch has the reason (unknown host, connection refused) in `cause`.
  return error.cause instanceof Error ? error.cause.message : error.message;
}

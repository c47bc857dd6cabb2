/** Fetches a nats-server if the machine's is missing or too old. */
import { createHash } from 'node:crypto';
import { copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { aptUnpack } from './apt.ts';
import { lastLines, runCommand } from './run-command.ts';

/** Debian suites with a new enough nats-server, the more stable one first. */
const SUITES = ['forky', 'sid'];
/** The release that is downloaded if no Debian suite works. */
const RELEASE = '2.15.1';
const RELEASES = 'https://github.com/nats-io/nats-server/releases/download';
const DOWNLOAD_TIMEOUT_MS = 120_000;
/** Node's names of architectures → those in the names of release archives. */
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = {
  x64: 'amd64',
  arm64: 'arm64',
};

/**
 * Installs a nats-server for which `accepts` is true into a folder of its own, atomically.
 * @throws Error whose message names each source and its failure
 */
export async function fetchNatsServer(
  folder: string,
  accepts: (path: string) => Promise<boolean>,
): Promise<void> {
  const refusals: string[] = [];
  for (const source of [...SUITES.map(debianSource), releaseSource(RELEASES)]) {
    const stage = `${folder}.new`;
    await rm(stage, { recursive: true, force: true });
    await mkdir(join(stage, 'work'), { recursive: true });
    try {
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

function debianSource(suite: string): Source {
  return {
    name: `Debian ${suite}`,
    unpack: async (dir) => join(await aptUnpack(suite, 'nats-server', dir), 'usr/sbin/nats-server'),
  };
}

/** A release archive, checked against the release's own list of checksums. */
export function releaseSource(releases: string): Source {
  return {
    name: `release ${RELEASE}`,
    unpack: async (dir) => {
      const name = `nats-server-v${RELEASE}-${process.platform}-${ARCHITECTURES[process.arch]}`;
      const [sums, archive] = await Promise.all([
        download(`${releases}/v${RELEASE}/SHA256SUMS`),
        download(`${releases}/v${RELEASE}/${name}.tar.gz`),
      ]);
      const digest = createHash('sha256').update(archive).digest('hex');
      const listed = sums.toString().split('\n');
      if (!listed.some((line) => line.trim() === `${digest}  ${name}.tar.gz`)) {
        throw new Error(`the checksum of ${name}.tar.gz does not match the published one`);
      }
      await writeFile(join(dir, 'release.tar.gz'), archive);
      const outcome = await runCommand(['tar', '-xzf', 'release.tar.gz'], {
        timeoutMs: DOWNLOAD_TIMEOUT_MS,
        cwd: dir,
      });
      if (outcome.code !== 0) throw new Error(lastLines(outcome.output));
      return join(dir, name, 'nats-server');
    },
  };
}

async function download(url: string): Promise<Buffer> {
  const response = await fetch(url, { signal: AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // fetch has the reason (unknown host, connection refused) in `cause`.
  return error.cause instanceof Error ? error.cause.message : error.message;
}

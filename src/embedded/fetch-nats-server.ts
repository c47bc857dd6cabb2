/** A nats-server of our own, where the machine's is missing or too old. */
import { createHash } from 'node:crypto';
import { copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { aptUnpack } from './apt.ts';
import { lastLines, runCommand } from './run-command.ts';

/** Newer Debian suites than the ones whose nats-server is too old, the calmer one first. */
const SUITES = ['forky', 'sid'];
/** The release that is fetched where no Debian suite can be: the one this was developed with. */
const RELEASE = '2.15.1';
const RELEASES = 'https://github.com/nats-io/nats-server/releases/download';
const DOWNLOAD_TIMEOUT_MS = 120_000;
/** Where the packages and archives have it, seen from where they were unpacked. */
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = {
  x64: 'amd64',
  arm64: 'arm64',
};

/**
 * Puts a nats-server that `accepts` into `<tools>/nats`, complete or not at all.
 * @throws Error whose message names each source and why it did not do
 */
export async function fetchNatsServer(
  tools: string,
  accepts: (path: string) => Promise<boolean>,
): Promise<void> {
  const refusals: string[] = [];
  for (const source of [...SUITES.map(debianSource), releaseSource(RELEASES)]) {
    const stage = join(tools, 'nats.new');
    await rm(stage, { recursive: true, force: true });
    await mkdir(join(stage, 'work'), { recursive: true });
    try {
      const binary = join(stage, 'nats-server');
      await copyFile(await source.unpack(join(stage, 'work')), binary);
      if (!(await accepts(binary))) throw new Error('it does not run here, or is too old');
      await rm(join(stage, 'work'), { recursive: true });
      await rm(join(tools, 'nats'), { recursive: true, force: true });
      await rename(stage, join(tools, 'nats'));
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
        throw new Error(`the checksum of ${name}.tar.gz is not the listed one`);
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
  // fetch hides what happened (no such host, refused) in the cause.
  return error.cause instanceof Error ? error.cause.message : error.message;
}

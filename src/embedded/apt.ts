/** Debian packages for a machine that lacks a program: installed, or only fetched and unpacked. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lastLines, runCommand } from './run-command.ts';

const UPDATE_TIMEOUT_MS = 3 * 60_000;
const INSTALL_TIMEOUT_MS = 15 * 60_000;
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

let updated: Promise<void> | null = null;

/**
 * Installs Debian packages for the whole machine, as root or through a sudo that asks nothing.
 * @throws Error with the reason, for a message
 */
export async function aptInstall(packages: readonly string[]): Promise<void> {
  const root = await rootPrefix();
  updated ??= aptUpdate(root);
  await updated;
  const outcome = await runCommand([...aptGet(root), ...INSTALL, ...packages], {
    timeoutMs: INSTALL_TIMEOUT_MS,
  });
  if (outcome.code !== 0) throw new Error(`apt-get failed: ${lastLines(outcome.output)}`);
}

const INSTALL = ['install', '-y', '-qq', '--no-install-recommends'];

/** The command a person would type for the same. */
export function aptCommand(packages: readonly string[]): string {
  return `sudo apt-get install --no-install-recommends ${packages.join(' ')}`;
}

function aptGet(root: readonly string[]): string[] {
  // Wait for another apt-get (unattended upgrades on a fresh machine) instead of failing.
  const wait = ['-o', 'DPkg::Lock::Timeout=300'];
  return [...root, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...wait];
}

/** Runs once per process. A failure is ignored: the existing package lists may be enough. */
async function aptUpdate(root: readonly string[]): Promise<void> {
  await runCommand([...aptGet(root), '-qq', 'update'], { timeoutMs: UPDATE_TIMEOUT_MS });
}

async function rootPrefix(): Promise<string[]> {
  if ((await runCommand(['apt-get', '--version'], { timeoutMs: 10_000 })).code !== 0) {
    throw new Error('this system has no apt-get');
  }
  if (process.getuid?.() === 0) return [];
  if ((await runCommand(['sudo', '-n', 'true'], { timeoutMs: 10_000 })).code === 0) {
    return ['sudo', '-n'];
  }
  throw new Error('installing needs root, or sudo without a password');
}

/**
 * Unpacks the package of another Debian suite into `<dir>/unpacked`, with a separate apt
 * configuration inside `dir`: the machine's sources and packages stay unchanged, and no root is
 * needed.
 * @throws Error with the reason, for a message
 */
export async function aptUnpack(suite: string, name: string, dir: string): Promise<string> {
  const archive = await debianArchive();
  if (archive === null) throw new Error('apt has no Debian archive configured');
  if (!existsSync(KEYRING)) throw new Error('the Debian archive keyring is not installed');
  for (const part of ['lists/partial', 'cache/archives/partial', 'parts']) {
    await mkdir(join(dir, part), { recursive: true });
  }
  await writeFile(
    join(dir, 'sources.list'),
    `deb [signed-by=${KEYRING}] ${archive} ${suite} main\n`,
  );
  await writeFile(join(dir, 'status'), '');
  const settings = [
    `Dir::Etc::sourcelist=${dir}/sources.list`,
    `Dir::Etc::sourceparts=${dir}/parts`,
    `Dir::State::lists=${dir}/lists`,
    `Dir::State::status=${dir}/status`,
    `Dir::Cache=${dir}/cache`,
    'APT::Sandbox::User=root',
    'Acquire::Languages=none',
    // Otherwise a failed update is only a warning, and the package is then reported as unknown.
    'APT::Update::Error-Mode=any',
    // A mirror may be frozen on purpose; its signature is still verified.
    'Acquire::Check-Valid-Until=false',
  ].flatMap((setting) => ['-o', setting]);
  await mustRun(['apt-get', '-qq', ...settings, 'update'], dir);
  await mustRun(['apt-get', '-qq', ...settings, 'download', name], dir);
  const unpacked = join(dir, 'unpacked');
  await mustRun(['sh', '-c', `exec dpkg-deb -x ./${name}_*.deb "$1"`, 'sh', unpacked], dir);
  return unpacked;
}

async function mustRun(command: readonly string[], cwd: string): Promise<void> {
  const outcome = await runCommand(command, { timeoutMs: UPDATE_TIMEOUT_MS, cwd });
  if (outcome.code !== 0) throw new Error(lastLines(outcome.output));
}

/** The Debian archive that this machine's apt uses; null: none. */
async function debianArchive(): Promise<string | null> {
  const targets = await runCommand(
    ['apt-get', 'indextargets', '--format', '$(REPO_URI) $(COMPONENT)', 'Created-By: Packages'],
    { timeoutMs: 30_000 },
  );
  const found = /^(\S+\/debian)\/? main$/m.exec(targets.output);
  return found?.[1] ?? null;
}

/** Debian packages for a machine that lacks a program. */
import { lastLines, runCommand } from '../run-command.ts';

const UPDATE_TIMEOUT_MS = 3 * 60_000;
const INSTALL_TIMEOUT_MS = 15 * 60_000;

let updated: Promise<void> | null = null;

/**
 * Installs Debian packages for the whole machine, as root or through a sudo that asks nothing. The
 * operator has agreed: consent.ts.
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

/** The addresses of the archives that this machine's apt installs from. */
export async function aptArchives(): Promise<string[]> {
  const command = ['apt-get', 'indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages'];
  const targets = await runCommand(command, { timeoutMs: 30_000 });
  if (targets.code !== 0) return [];
  return [...new Set(targets.output.split('\n').map((line) => line.trim().replace(/\/$/, '')))];
}

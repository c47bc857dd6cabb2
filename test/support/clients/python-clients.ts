import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const INSTALL_MS = 240_000;
/** A script's first page may wait for a browser that is launched on a busy machine. */
const SCRIPT_MS = 120_000;

/** Runs a script with these arguments; returns what it printed. */
export type Python = (script: string, ...args: string[]) => Promise<string>;

/**
 * A Python environment of its own in the folder, with these packages (`name==version`). Null, with
 * the reason printed: this machine has no Python, or reaches no package index.
 */
export async function installPython(
  folder: string,
  packages: readonly string[],
): Promise<Python | null> {
  const environment = join(folder, 'python');
  const python = join(environment, 'bin', 'python');
  try {
    await run('python3', ['-m', 'venv', environment], { timeout: INSTALL_MS });
    const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
    await run(python, [...install, ...packages], { timeout: INSTALL_MS });
  } catch (error) {
    console.log(`${packages.join(', ')} left out: ${String(error).split('\n')[0]}`);
    return null;
  }
  return async (script, ...args) => {
    const { stdout } = await run(python, ['-c', script, ...args], { timeout: SCRIPT_MS });
    return stdout.trim();
  };
}

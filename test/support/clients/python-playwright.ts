import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const INSTALL_MS = 240_000;

/**
 * Playwright for Python in an environment of its own in the folder: the path of its interpreter;
 * null, with the reason told: this machine has no Python, or reaches no package index.
 */
export async function installPythonPlaywright(folder: string): Promise<string | null> {
  const environment = join(folder, 'python');
  const python = join(environment, 'bin', 'python');
  try {
    await run('python3', ['-m', 'venv', environment], { timeout: INSTALL_MS });
    const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
    await run(python, [...install, 'playwright==1.65.2'], { timeout: INSTALL_MS });
    return python;
  } catch (error) {
    console.log(`Playwright for Python is left out: ${String(error).split('\n')[0]}`);
    return null;
  }
}

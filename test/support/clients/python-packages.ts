import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const INSTALL_MS = 540_000;

/**
 * A new Python environment in the folder with these packages: the path of its interpreter.
 * @param packages as pip takes them: names with versions, or paths of wheels
 * @throws Error if this machine has no Python, or reaches no package index
 */
export async function installPython(folder: string, packages: string[]): Promise<string> {
  const environment = join(folder, 'python');
  const python = join(environment, 'bin', 'python');
  await run('python3', ['-m', 'venv', environment], { timeout: INSTALL_MS });
  const install = [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--no-compile',
    '--disable-pip-version-check',
  ];
  await run(python, [...install, ...packages], { timeout: INSTALL_MS });
  return python;
}

/** `installPython`, but null, with the reason printed, where it fails. */
export async function tryInstallPython(folder: string, packages: string[]): Promise<string | null> {
  try {
    return await installPython(folder, packages);
  } catch (error) {
    console.log(`${packages.join(', ')}: left out: ${String(error).split('\n')[0]}`);
    return null;
  }
}

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const CLONE_MS = 300_000;

/**
 * The newest version of others' tests, in a folder below the given one; null, with the reason
 * printed, where their repository is not reached.
 * @param variable names a folder or a repository in place of the one on GitHub
 */
export async function trySuite(folder: string, name: string, variable: string) {
  const from = process.env[variable] ?? `https://github.com/${name}`;
  const into = join(folder, 'suite');
  try {
    await run('git', ['clone', '--quiet', '--depth', '1', from, into], { timeout: CLONE_MS });
    return into;
  } catch (error) {
    console.log(`${name}: left out: ${String(error).split('\n')[1] ?? String(error)}`);
    return null;
  }
}

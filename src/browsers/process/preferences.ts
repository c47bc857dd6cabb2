import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { BrowserUser } from './programs.ts';

/** The browser image runs the same script. */
const SCRIPT = fileURLToPath(new URL('../../../deploy/browser/preferences.sh', import.meta.url));
const WITHIN_MS = 10_000;

/**
 * Writes what Chromium's preferences have to say before it starts into a profile that exists or
 * not. As the browser's user: a page may have put a link into a profile that is kept, and only that
 * user's rights may follow it. The user need not be able to read the script.
 * @throws Error where they cannot be written
 */
export async function writePreferences(profile: string, user: BrowserUser): Promise<void> {
  const args = ['-c', readFileSync(SCRIPT, 'utf8'), 'preferences.sh', profile];
  await promisify(execFile)('/bin/sh', args, { cwd: '/', timeout: WITHIN_MS, ...user });
}

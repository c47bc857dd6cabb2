import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { CRASHES, OUTCOMES, type RunRecord } from './outcomes.ts';
import type { Ran } from './rule.ts';

const FORWARDED = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/**
 * Runs vitest as a child process by this command, to its end. Its output is this process's own, not
 * a pipe: a program that a failed test left behind would hold that open.
 */
export async function runVitest(
  [command = '', ...before]: readonly string[],
  args: readonly string[],
  { root, env, stdio }: { root: string; env: Record<string, string>; stdio: 'inherit' | 'ignore' },
): Promise<Ran> {
  const folder = mkdtempSync(join(tmpdir(), 'gate-'));
  const outcomes = join(folder, 'outcomes.json');
  const crashes = join(folder, 'crashes');
  try {
    const child = spawn(command, [...before, ...args], {
      cwd: root,
      env: { ...process.env, ...env, [OUTCOMES]: outcomes, [CRASHES]: crashes },
      stdio: ['ignore', stdio, stdio],
    });
    let isStopped = false;
    const forward = (signal: NodeJS.Signals) => {
      isStopped = true;
      child.kill(signal);
    };
    for (const signal of FORWARDED) process.on(signal, forward);
    const code = await new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (status, signal) =>
        resolve(status ?? 128 + constants.signals[signal ?? 'SIGKILL']),
      );
    });
    for (const signal of FORWARDED) process.off(signal, forward);
    const written = readText(outcomes);
    return {
      record: written === '' || isStopped ? null : (JSON.parse(written) as RunRecord),
      code,
      crashes: readText(crashes).split('\n').filter(Boolean),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const readText = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '');

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processStart } from '#src/embedded/pid-lock.mjs';

/** An empty folder that is removed after the test. */
export async function scratchDir(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'embedded-test-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** False also for a process that has ended and waits to be reaped. */
export function isRunning(pid: number): boolean {
  return processStart(pid) !== null;
}

/** The path of a program that test/support/programs.setup.ts found or installed. */
export function programPath(variable: 'NATS_SERVER' | 'REDIS_SERVER'): string {
  const path = process.env[variable];
  if (path === undefined) throw new Error(`${variable} is not set: run the tests through vitest`);
  return path;
}

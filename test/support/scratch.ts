import type { Dirent } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processStart } from '#src/start/embedded/pid-lock.mjs';

/** An empty folder that is removed after the test. */
export async function scratchDir(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'embedded-test-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Every file below a folder except those that a running program removes meanwhile. */
export async function filesBelow(folder: string): Promise<Dirent[]> {
  const entries = (await readdir(folder, { withFileTypes: true }).catch(nullIfGone)) ?? [];
  const found = entries.map(async (entry) => {
    if (entry.isDirectory()) return filesBelow(join(folder, entry.name));
    return entry.isFile() ? [entry] : [];
  });
  return (await Promise.all(found)).flat();
}

/** For `catch`: null where a file or folder is gone. */
export function nullIfGone(error: NodeJS.ErrnoException): null {
  if (error.code !== 'ENOENT') throw error;
  return null;
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

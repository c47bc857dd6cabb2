/** DATA_DIR: one service at a time, and one that can write there. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { takeLock } from './pid-lock.mjs';

/** Another live service uses the same DATA_DIR. */
export class DataDirInUse extends Error {
  override readonly name = 'DataDirInUse';
}

/** DATA_DIR cannot be made or written; the message says why. */
export class DataDirNotWritable extends Error {
  override readonly name = 'DataDirNotWritable';
}

const POLL_MS = 50;

/**
 * Makes the folder where it is missing and holds it until disposal. A lock that a killed service
 * left is taken over. `waitMs`: how long a service that is about to end is waited for.
 * @throws DataDirInUse
 * @throws DataDirNotWritable
 */
export async function lockDataDir(
  dataDir: string,
  { waitMs = 3000 }: { waitMs?: number } = {},
): Promise<AsyncDisposable> {
  const dir = resolve(dataDir);
  makeWritable(dir);
  const deadline = Date.now() + waitMs;
  for (;;) {
    const lock = takeLock(join(dir, 'lock'));
    if (lock.taken) return { [Symbol.asyncDispose]: async () => lock.release() };
    if (Date.now() >= deadline) {
      throw new DataDirInUse(
        `DATA_DIR ${dir} is in use by another running service (process ${lock.holder.pid}): ` +
          'stop it, or give this one a DATA_DIR of its own',
      );
    }
    await delay(POLL_MS);
  }
}

function makeWritable(dir: string): void {
  try {
    // It will hold keys: nobody else's business.
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const probe = join(dir, `.writable.${process.pid}`);
    writeFileSync(probe, '');
    rmSync(probe);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new DataDirNotWritable(`DATA_DIR ${dir} cannot be written: ${reason}`, { cause: error });
  }
}

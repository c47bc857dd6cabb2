import { createHash } from 'node:crypto';
import { mkdir, readlink, rm, rmdir, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SERVICE_ACCOUNT } from '#events/tenant-subjects.ts';

/** The machine's memory as a folder; where there is none, batches are staged on disk as ever. */
const MEMORY = '/dev/shm';
/** A folder in use is empty again within milliseconds. */
const TRIES_MAX = 100;
const PAUSE_MS = 20;

/**
 * A lone nats-server stages each atomic batch in a small file store of its own beside the stream;
 * making and removing that takes ten times what the batch itself does. In a cluster it stages in
 * memory. Nothing is lost with it: a staged batch is not acknowledged, and the server throws all
 * staging away when it starts (which is why this is called after each start). So here it is put
 * into memory too.
 * @param storeDir the JetStream folder, e.g. `<data>/nats/jetstream`
 * @returns whether batches are staged in memory now
 */
export async function stageBatchesInMemory(storeDir: string, stream: string): Promise<boolean> {
  const memory = memoryFolder(storeDir);
  const place = join(storeDir, SERVICE_ACCOUNT, 'streams', stream, 'batches');
  try {
    if (!(await stat(MEMORY)).isDirectory()) return false;
    await mkdir(memory, { recursive: true, mode: 0o700 });
  } catch {
    return false;
  }
  for (let attempt = 1; attempt <= TRIES_MAX; attempt += 1) {
    try {
      await symlink(memory, place);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false;
      if (await readlink(place).catch(() => null)) return true;
    }
    // Only an empty one goes: what is being staged in it stays whole. A link cannot go this way.
    await rmdir(place).catch(() => undefined);
    await pause(PAUSE_MS);
  }
  return false;
}

/** Removes what a service's batches were staged in. */
export async function removeStaging(storeDir: string): Promise<void> {
  await rm(memoryFolder(storeDir), { recursive: true, force: true });
}

function memoryFolder(storeDir: string): string {
  const name = createHash('sha256').update(storeDir).digest('hex').slice(0, 16);
  return join(MEMORY, `browser-session-service-${name}`);
}

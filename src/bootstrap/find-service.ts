import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '#src/config/config.ts';
import { RUNTIME_FILE, type Runtime } from '#src/embedded/runtime-file.ts';
import { NoService } from '../cli/errors.ts';

/** Where the running service has its log and its read model (null: not known). */
export type FoundService = { natsUrl: string; redisUrl: string | null };

/**
 * The service that NATS_URL and REDIS_URL name, else the one that runs on DATA_DIR.
 * @throws NoService
 */
export async function findService(config: Config): Promise<FoundService> {
  const { dataDir, natsUrl, redisUrl } = config;
  if (natsUrl !== null) return { natsUrl, redisUrl };
  const runtime = await readRuntime(dataDir);
  if (runtime === null)
    throw new NoService(
      `no service runs on ${dataDir}: npm start starts one; DATA_DIR or NATS_URL names another`,
    );
  if (!isAlive(runtime.pid))
    throw new NoService(
      `no service runs on ${dataDir}: process ${runtime.pid}, which did, is gone; npm start`,
    );
  return { natsUrl: runtime.nats_url, redisUrl: redisUrl ?? runtime.redis_url };
}

async function readRuntime(dataDir: string): Promise<Runtime | null> {
  const path = join(dataDir, RUNTIME_FILE);
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Runtime;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw new NoService(`${path} cannot be read: ${String(error)}`, { cause: error });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, and is another user's.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

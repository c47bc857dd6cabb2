import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '#src/kernel/config/config.ts';
import { RUNTIME_FILE, type Runtime } from '#src/start/embedded/runtime-file.ts';

/** No service to talk to was found, or it cannot be reached. */
export class ServiceNotFoundError extends Error {
  override readonly name = 'ServiceNotFoundError';
}

/** Addresses of the running service's event store and read model (null: not known). */
export type FoundService = { natsUrl: string; redisUrl: string | null };

/**
 * The service at NATS_URL and REDIS_URL, or without NATS_URL the one that runs on DATA_DIR.
 * @throws ServiceNotFoundError
 */
export async function findService(config: Config): Promise<FoundService> {
  const { dataDir, natsUrl, redisUrl } = config;
  if (natsUrl !== null) return { natsUrl, redisUrl };
  const runtime = await findRuntime(dataDir);
  return { natsUrl: runtime.nats_url, redisUrl: redisUrl ?? runtime.redis_url };
}

/**
 * The address of the API of the service that runs on DATA_DIR.
 * @throws ServiceNotFoundError
 */
export async function findApi({ dataDir }: Config): Promise<string> {
  const { api_url: url } = await findRuntime(dataDir);
  if (url !== null) return url;
  throw new ServiceNotFoundError(`the service on ${dataDir} has no API: set API_URL`);
}

async function findRuntime(dataDir: string): Promise<Runtime> {
  const runtime = await readRuntime(dataDir);
  if (runtime === null)
    throw new ServiceNotFoundError(
      `no service runs on ${dataDir}: start one (npm start), or set DATA_DIR or NATS_URL`,
    );
  if (!isAlive(runtime.pid))
    throw new ServiceNotFoundError(
      `no service runs on ${dataDir}: its process ${runtime.pid} is gone; start it (npm start)`,
    );
  return runtime;
}

async function readRuntime(dataDir: string): Promise<Runtime | null> {
  const path = join(dataDir, RUNTIME_FILE);
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Runtime;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw new ServiceNotFoundError(`${path} cannot be read: ${String(error)}`, { cause: error });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

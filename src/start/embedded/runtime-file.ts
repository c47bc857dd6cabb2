import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Addresses of the running service, for the command line. Readable only by its owner: the address
 * of the embedded NATS contains the service's password.
 */
export type Runtime = {
  pid: number;
  started_at: string;
  api_url: string | null;
  gateway_ws_url: string | null;
  gateway_wss_url: string | null;
  nats_url: string;
  /** Where tenants connect with their API keys; null: no tenant is admitted. */
  tenant_nats_url: string | null;
  redis_url: string;
};

export const RUNTIME_FILE = 'runtime.json';

/** Writes `runtime.json` atomically; disposing removes it. */
export async function writeRuntime(dataDir: string, runtime: Runtime): Promise<AsyncDisposable> {
  const path = join(dataDir, RUNTIME_FILE);
  await writeFile(`${path}.new`, `${JSON.stringify(runtime, null, 2)}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
  return { [Symbol.asyncDispose]: () => rm(path, { force: true }) };
}

import { createServer } from 'node:net';

/**
 * Ports for tests. None is an ephemeral port (from 32768), or one that screens (from 11000) and
 * embedded servers (from 20000) choose themselves: those could take a port that a test has reserved
 * for a service that does not listen yet. Each worker has its own range, and uses one port after
 * the other. `fetch` refuses some ports below 6700, and 10080.
 */
const PORTS = { from: 8_500, each: 390 };
/** More than the number of concurrent workers. */
const WORKERS_MAX = 4;
const worker = Number(process.env['VITEST_POOL_ID'] ?? 0) % WORKERS_MAX;
let next = Math.floor(Math.random() * PORTS.each);

/** A free port; no other test gets it while this worker lives. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < PORTS.each; tries += 1) {
    const port = PORTS.from + worker * PORTS.each + next;
    next = (next + 1) % PORTS.each;
    if (await isFree(port)) return port;
  }
  throw new Error('no free port for a test');
}

export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort());
  return ports;
}

async function isFree(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

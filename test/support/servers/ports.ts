import { createServer } from 'node:net';

/**
 * Ports for tests: none of those of outgoing connections (from 32768), nor of those that screens
 * (from 11000) and embedded servers (from 20000) choose for themselves, who would take one that a
 * test has kept for a service which has not begun to listen. Each worker has its own, and takes one
 * after the other. `fetch` refuses some ports below 6700, and 10080.
 */
const PORTS = { from: 8_500, each: 390 };
/** More than run at once. */
const WORKERS_MAX = 4;
const worker = Number(process.env['VITEST_POOL_ID'] ?? 0) % WORKERS_MAX;
let next = Math.floor(Math.random() * PORTS.each);

/** A port that nobody listens on; for as long as this worker lives no other test is given it. */
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

import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { takeLock } from '#src/start/embedded/pid-lock.mjs';

/**
 * Ports for tests. None is an ephemeral port (from 32768), or one that screens (from 11000) and
 * embedded servers (from 20000) choose themselves: those could take a port that a test has reserved
 * for a service that does not listen yet. Each worker begins in its own range, and uses one port
 * after the other. `fetch` refuses some ports below 6700, and 10080.
 */
const PORTS = { from: 8_500, each: 390 };
/** More than the number of concurrent workers. */
const WORKERS_MAX = 4;
/**
 * A lock file for each reserved port. Runs beside this one see it: a port that is reserved and does
 * not listen yet looks free. It counts while its process lives.
 */
const LOCKS = `/tmp/bss-test-ports-${userInfo().uid}`;

const worker = Number(process.env['VITEST_POOL_ID'] ?? 0) % WORKERS_MAX;
let next = Math.floor(Math.random() * PORTS.each);
const held = new Set<number>();
const releases: (() => void)[] = [];

/**
 * A free port; no other process of tests gets it while this one lives, and here it is the last to
 * come again.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < PORTS.each; tries += 1) {
    const port = PORTS.from + worker * PORTS.each + next;
    next = (next + 1) % PORTS.each;
    if (isHeld(port) && (await isFree(port))) return port;
  }
  throw new Error('no free port for a test');
}

export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort());
  return ports;
}

/** Reserves the port for this process, unless another one has it. */
function isHeld(port: number): boolean {
  if (held.has(port)) return true;
  mkdirSync(LOCKS, { recursive: true, mode: 0o700 });
  const lock = takeLock(join(LOCKS, String(port)));
  if (!lock.taken) return false;
  if (held.size === 0) process.once('exit', () => releases.forEach((release) => release()));
  releases.push(lock.release);
  held.add(port);
  return true;
}

async function isFree(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

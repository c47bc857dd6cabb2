/**
 * Before all tests: installs missing programs, and builds the dashboard and the service's bundle.
 * Workers inherit the environment. After all tests: ends the services that workers have shared.
 */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildBundle } from '#src/start/embedded/build/bundle.mjs';
import { buildDashboard } from '#src/start/embedded/build/dashboard.mjs';
import { ensurePrograms } from '#src/start/embedded/install/programs.ts';
import { openRunFolder } from '#test/support/shared/run-folder.ts';

let runFolder: AsyncDisposable | null = null;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Tests find a program by the same variable that an operator sets. */
const VARIABLES = {
  'nats-server': 'NATS_SERVER',
  'redis-server': 'REDIS_SERVER',
  chromium: 'CHROMIUM',
  Xtigervnc: 'XTIGERVNC',
  chromedriver: 'CHROMEDRIVER',
} as const;

export async function setup(): Promise<void> {
  // Halves the processor time of each start of the service and of `bss`: there are hundreds.
  process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), 'node-compile-cache');
  const names = Object.keys(VARIABLES) as (keyof typeof VARIABLES)[];
  const paths = await ensurePrograms(names, (line) => console.error(line));
  for (const name of names) process.env[VARIABLES[name]] = paths[name];
  await buildDashboard(ROOT, (line) => console.error(line));
  process.env['TEST_BUNDLE'] = await buildBundle(ROOT, (line) => console.error(line));
  runFolder = await openRunFolder();
}

export async function teardown(): Promise<void> {
  await runFolder?.[Symbol.asyncDispose]();
}

/**
 * Servers of simulated browsers, several in one process: node servers-apart.ts COUNT prints `ready`
 * once all have joined, and leaves at SIGTERM. Each is a whole provisioner with its own connection.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { start } from '#src/start/start.ts';
import { readConfig } from '#src/kernel/config/config.ts';
import { createLogger } from '#src/kernel/telemetry/logger.ts';

const count = Number(process.argv[2]);
const ending = new AbortController();
const ended = once(process, 'SIGTERM');
const folder = await mkdtemp(join(tmpdir(), 'bss-fleet-'));
const log = createLogger('warn');
{
  await using started = new AsyncDisposableStack();
  started.defer(() => rm(folder, { recursive: true, force: true }));
  for (let at = 0; at < count; at += 1) {
    const config = readConfig({ ...process.env, DATA_DIR: join(folder, `${at}`) });
    const server = started.use(await start(config, log, () => undefined, ending.signal));
    await server.warm();
  }
  process.stdout.write('ready\n');
  await ended;
  ending.abort();
}

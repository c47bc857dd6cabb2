import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const START = fileURLToPath(new URL('../../support/service/failing-start.ts', import.meta.url));
const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
/**
 * A failing start ends within some 10 seconds, later on a busy machine; the test kills it after
 * this.
 */
const ENDS_WITHIN_MS = 60_000;
/** A timer that keeps its process alive, as a part that is not disposed of would. */
const ENDLESS = 'data:text/javascript,setInterval(() => undefined, 1000)';

test('a provisioner whose start fails late leaves nothing that keeps its process alive', async () => {
  const { code, output } = await run([START]);
  expect(output).toContain('Unavailable: the event-log does not answer');
  expect(code).toBe(0);
});

test('a service whose start fails ends, even if a part keeps its process alive', async () => {
  const { code, output } = await run(['--import', ENDLESS, MAIN], { PORT: 'none' });
  expect(output).toContain('PORT');
  expect(code).toBe(1);
});

/** Runs a process to its end, or kills it after `ENDS_WITHIN_MS`. */
async function run(args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: ENDS_WITHIN_MS,
    killSignal: 'SIGKILL',
  });
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await once(child, 'close');
  return { code: code as number | null, output: (await output).join('') };
}

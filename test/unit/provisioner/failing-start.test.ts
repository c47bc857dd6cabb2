import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const START = fileURLToPath(new URL('../../support/service/failing-start.ts', import.meta.url));
const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
/** A start that fails ends in some 10 seconds; this is where a test gives it up. */
const ENDS_WITHIN_MS = 20_000;
/** What a part that is left behind does to its process. */
const ENDLESS = 'data:text/javascript,setInterval(() => undefined, 1000)';

test('a provisioner that fails late in its start leaves nothing that keeps its process', async () => {
  const { code, said } = await ran([START]);
  expect(said).toContain('Unavailable: the event-log does not answer');
  expect(code).toBe(0);
});

test('a service that fails in its start ends, whatever it has left behind', async () => {
  const { code, said } = await ran(['--import', ENDLESS, MAIN], { PORT: 'none' });
  expect(said).toContain('PORT');
  expect(code).toBe(1);
});

/** Runs it to its end; it is killed where the test gives it up. */
async function ran(args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: ENDS_WITHIN_MS,
    killSignal: 'SIGKILL',
  });
  const said = Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await once(child, 'close');
  return { code: code as number | null, said: (await said).join('') };
}

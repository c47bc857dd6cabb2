import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient, type Client } from '#src/apps/client/client.ts';
import { DEV_KEY } from '#test/support/service/service.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { startRealService, type RealService } from '#test/support/service/real-session.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));

/** The files in test/examples, run against a service with real browsers. */
let service: RealService;
let client: Client;
beforeAll(async () => {
  service = await startRealService();
  client = createClient({ url: service.apiUrl, apiKey: DEV_KEY });
});
afterAll(() => service?.[Symbol.asyncDispose]());

describe('an example', () => {
  test('drives a session with Playwright and stops it', async () => {
    expect(await run('playwright.mjs')).toEqual(['Hello from by-playwright']);
    const { sessions } = await client.sessions.list({ limit: 1 });
    expect(sessions).toMatchObject([
      { session_name: 'by-playwright', status: expect.stringMatching(/^stopp/) },
    ]);
  });

  test('puts a file into a session and takes one out', async () => {
    expect(await run('files.mjs')).toEqual(['people.csv', 'ann.txt Hello Ann']);
  });

  test('drives a session with Puppeteer and prints its events', async () => {
    const lines = await run('puppeteer.mjs');
    expect(lines[0]).toBe('Hello from by-puppeteer');
    expect(lines[1]).toBe('session.requested creating');
    expect(lines).toContain('session.activated active');
    expect(lines.at(-1)).toBe('session.stopped stopped');
  });

  test('receives all events with curl and resumes after a lost connection', async () => {
    if (spawnSync('curl', ['--version']).status !== 0) return;
    await using folder = await scratchDir();
    using listening = start('sh', [join(EXAMPLES, 'events.sh'), service.apiUrl, DEV_KEY], folder);
    const first = await listening.until(/organization\.registered/);
    expect(first).toMatch(/^\d+ organization\.registered$/);
    await using session = await client.sessions.create();
    expect(await listening.until(/session\.activated/)).toMatch(/^\d+ session\.activated$/);
    const before = [...listening.lines];
    // As if a proxy or the service itself ended.
    for (const pid of listening.descendants('curl')) process.kill(pid);
    await session.stop();
    await listening.until(/session\.stopped/);
    expect(listening.lines.slice(0, before.length)).toEqual(before);
    const sequences = listening.lines.map((line) => Number(line.split(' ')[0]));
    expect(sequences).toEqual([...new Set(sequences)].toSorted((a, b) => a - b));
  });

  test('consumes all events over NATS', async () => {
    const script = join(EXAMPLES, 'nats-consumer.mjs');
    const address = service.runtime.tenant_nats_url ?? '';
    using working = start(process.execPath, [script, address, 'dev', DEV_KEY]);
    await working.until(/organization\.registered dev$/);
    await using session = await client.sessions.create();
    await working.until(new RegExp(`session\\.activated ${session.id}$`));
  });
});

/** The lines that an example prints. */
async function run(name: string): Promise<string[]> {
  const args = [join(EXAMPLES, name), service.apiUrl, DEV_KEY];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const [said, complaint, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  expect([name, code, complaint]).toEqual([name, 0, '']);
  return said.trim().split('\n');
}

/** An example that runs until disposal. */
function start(program: string, args: string[], folder?: { path: string }) {
  const child = spawn(program, args, {
    cwd: folder?.path,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    lines,
    async until(pattern: RegExp): Promise<string> {
      for (;;) {
        const { value, done } = await reader.next();
        if (done === true) throw new Error(`it ended:\n${lines.join('\n')}`);
        lines.push(value);
        if (pattern.test(value)) return value;
      }
    },
    descendants(name: string): number[] {
      const { stdout } = spawnSync('ps', ['-o', 'pid=,comm=', '-g', String(child.pid)]);
      const rows = stdout
        .toString()
        .split('\n')
        .map((row) => row.trim().split(/\s+/));
      return rows.filter(([, command]) => command === name).map(([pid]) => Number(pid));
    },
    [Symbol.dispose]: () => void process.kill(-(child.pid ?? Number.NaN), 'SIGKILL'),
  };
}

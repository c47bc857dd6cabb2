import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectApi, type ApiClient } from '#test/support/clients/api-client.ts';
import { tryInstallPython } from '#test/support/clients/python-packages.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { startFlakyTcpProxy, type FlakyTcpProxy } from '#test/support/servers/flaky-tcp-proxy.ts';
import { freePort } from '#test/support/servers/ports.ts';
import {
  DEV_KEY,
  eventually,
  startService,
  type RunningService,
} from '#test/support/service/service.ts';

/** Others' readers of Server-Sent Events, on the whole service. */

const EXAMPLE = fileURLToPath(new URL('../../examples/python/events_example.py', import.meta.url));

let folder: Awaited<ReturnType<typeof scratchDir>>;
let python: string | null;
let service: RunningService;
let proxy: FlakyTcpProxy;
let api: ApiClient;
beforeAll(async () => {
  folder = await scratchDir();
  python = await tryInstallPython(folder.path, ['httpx==0.28.1', 'httpx-sse==0.4.3']);
  service = await startService();
  proxy = await startFlakyTcpProxy(Number(new URL(service.apiUrl).port));
  api = await connectApi(service.apiUrl);
});
afterAll(async () => {
  await proxy?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

/** A session's whole life; returns the lines that the example prints of it. */
async function liveSession(): Promise<string[]> {
  const { body } = await api.create();
  await api.stop(body.id as string);
  return ['requested', 'activated', 'stop-requested', 'stopped'].map(
    (what) => `session.${what} ${body.id}`,
  );
}

/** Resolves once a stream that is opened now has had this many heartbeats. */
async function heartbeats(count: number): Promise<void> {
  const headers = { authorization: `Bearer ${DEV_KEY}` };
  const { body } = await fetch(`${service.apiUrl}/api/events`, { headers });
  let text = '';
  for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? [])
    if ((text += part).split(': heartbeat\n').length > count) return;
  throw new Error(`the stream ended: ${text}`);
}

test('httpx-sse reads events alone, and resumes a stream that was cut before its first', async () => {
  if (python === null) return expect.soft(python).toBeNull();
  const args = [EXAMPLE, `http://127.0.0.1:${proxy.port}`, DEV_KEY];
  const example: ChildProcess = spawn(python, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(example, 'exit');
  let printed = '';
  example.stdout?.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const lines = () => printed.split('\n').slice(0, -1);
  const sessions = () => lines().filter((line) => line.startsWith('session.'));
  try {
    await eventually(() => lines().length === 1, 'its stream is open');
    await heartbeats(2);
    expect(lines()).toEqual([expect.stringMatching(/^from behind \d+$/)]);
    const [begin] = lines();
    proxy.leadTo(await freePort());
    const missed = await liveSession();
    proxy.leadTo(Number(new URL(service.apiUrl).port));
    await eventually(() => sessions().length === missed.length, 'what it missed');
    expect(lines().filter((line) => line === begin).length).toBe(2);
    await heartbeats(2);
    const live = await liveSession();
    await eventually(() => sessions().length === missed.length + live.length, 'what is new');
    expect(sessions()).toEqual([...missed, ...live]);
    await service[Symbol.asyncDispose]();
    await eventually(() => printed.includes('This server is shutting down'), 'the end');
    expect(example.exitCode).toBeNull();
  } finally {
    example.kill();
    await ended;
  }
});

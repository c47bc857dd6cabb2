import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findProgram } from '#src/start/embedded/install/programs.ts';
import { installExample, packClient } from '#test/support/clients/example-project.ts';
import { openFormSite, type FormSite } from '#test/support/clients/form-site.ts';
import { installPython } from '#test/support/clients/python-packages.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import { poolOf, startRealService, type RealService } from '#test/support/service/real-session.ts';

/** The first scripts of others' clients at /wd/hub, with the packages that their users have. */
const run = promisify(execFile);
const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));
const MANY = fileURLToPath(new URL('../../support/clients/selenium-many.mjs', import.meta.url));
const RUN = { timeout: 300_000 };
const MANY_COUNT = 20;
/** Twenty browsers start, and end by a minute's idle time and the look for that. */
const MANY_MS = 600_000;

let folder: Awaited<ReturnType<typeof scratchDir>>;
let service: RealService;
let site: FormSite;
let hub: string;
beforeAll(async () => {
  folder = await scratchDir();
  service = await startRealService({ POOL_MIN_IDLE: '1' });
  site = await openFormSite();
  hub = hubOf(service);
});
afterAll(async () => {
  await site?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

function hubOf({ apiUrl }: RealService): string {
  return new URL('/wd/hub', apiUrl).href.replace('://', `://user:${DEV_KEY}@`);
}

/** The last session of the name. */
async function sessionOf(name: string) {
  const { body } = await service.request('GET', '/api/sessions?limit=100');
  const sessions = body.sessions as { id: string; session_name: string }[];
  const { id = '' } = sessions.find(({ session_name }) => session_name === name) ?? {};
  return (await service.request('GET', `/api/sessions/${id}`)).body;
}

describe('the first script', () => {
  test('of Selenium for Python fills in a form and stops its session', async () => {
    const python = await installPython(folder.path, ['selenium==4.49.0']);
    const { stdout } = await run(python, [join(EXAMPLES, 'selenium/first.py'), hub, site.url], RUN);
    expect(stdout.trim().split('\n')).toEqual(['Web form', 'Received Selenium']);
    expect(await sessionOf('by-python')).toMatchObject({ ended_reason: 'user' });
  });

  test('of Selenium’s BiDi hears what a page logs and loads', async () => {
    const python = await installPython(folder.path, ['selenium==4.49.0']);
    const listen = join(EXAMPLES, 'selenium/listen.py');
    const { stdout } = await run(python, [listen, hub, site.url], RUN);
    expect(stdout.trim().split('\n')).toEqual(['True', 'Hello from Web form']);
    expect(await sessionOf('by-bidi')).toMatchObject({ ended_reason: 'user' });
  });

  test('of Selenium for Java fills in a form and stops its session', async () => {
    const lib = join(folder.path, 'lib');
    await copyFile(join(EXAMPLES, 'selenium/pom.xml'), join(folder.path, 'pom.xml'));
    const install = ['-q', '-B', 'dependency:copy-dependencies', `-DoutputDirectory=${lib}`];
    await run('mvn', install, { ...RUN, cwd: folder.path });
    const script = join(EXAMPLES, 'selenium/First.java');
    const { stdout } = await run('java', ['-cp', `${lib}/*`, script, hub, site.url], RUN);
    expect(stdout.trim().split('\n')).toEqual(['Web form', 'Received Selenium']);
    expect(await sessionOf('by-java')).toMatchObject({ ended_reason: 'user' });
  });

  test('of WebdriverIO fills in a form and stops its session', async () => {
    const client = await packClient(folder.path);
    const example = await installExample('webdriverio', folder.path, client);
    const said = await example('node', ['first.mjs', service.apiUrl, DEV_KEY, site.url]);
    expect(said.split('\n')).toEqual(['Web form', 'Received WebdriverIO']);
    expect(await sessionOf('by-webdriverio')).toMatchObject({ ended_reason: 'user' });
  });
});

test('a driver that takes 15 s to start, as on a busy machine, is waited for', async () => {
  const program = await findProgram('chromedriver');
  const CHROMEDRIVER = join(folder.path, 'slow-driver');
  const script = `#!/bin/sh\nsleep 15\nexec ${program} "$@"\n`;
  await writeFile(CHROMEDRIVER, script, { mode: 0o755 });
  await chmod(folder.path, 0o711); // the browsers' user starts it
  await using slow = await startRealService({ POOL_MIN_IDLE: '1', CHROMEDRIVER });
  const capabilities = { alwaysMatch: { browserName: 'chrome' } };
  const { status, body } = await slow.request('POST', '/wd/hub/session', { capabilities });
  expect([status, body]).toEqual([200, { value: expect.objectContaining({}) }]);
  const path = `/wd/hub/session/${body.value.sessionId}`;
  expect((await slow.request('DELETE', path)).status).toBe(200);
});

test(
  `${MANY_COUNT} sessions of a client that is killed all end as idle`,
  async () => {
    // All are warm: how long twenty browsers take to start on a busy machine is not the question.
    const pool = { POOL_MIN_IDLE: String(MANY_COUNT), POOL_MAX: String(MANY_COUNT) };
    await using full = await startRealService(pool);
    await eventually(
      async () => (await poolOf(full))['idle'] === MANY_COUNT,
      'a browser for each session',
      MANY_MS / 2,
    );
    const client = spawn(process.execPath, [MANY, hubOf(full), site.url, String(MANY_COUNT)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let complaints = '';
    client.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text));
    onTestFinished(() => void client.kill('SIGKILL'));
    const ended = once(client, 'close');
    const lines = createInterface({ input: client.stdout });
    const [titles] = (await Promise.race([once(lines, 'line'), ended])) as [unknown];
    expect(JSON.parse(String(titles)), complaints).toEqual(Array(MANY_COUNT).fill('Web form'));
    // A read model that is behind, as on a busy machine, refuses with 503.
    const read = (path: string) =>
      eventually(async () => {
        const { status, body } = await full.request('GET', `/api/sessions${path}`);
        if (status !== 200 && status !== 503) throw new Error(`${status} ${JSON.stringify(body)}`);
        return status === 200 && body;
      }, `the answer to GET /api/sessions${path}`);
    const all = async () => {
      const { sessions } = await read('?limit=100&label=test%3Dmany');
      return sessions as { id: string; status: string }[];
    };
    expect((await all()).map(({ status }) => status)).toEqual(Array(MANY_COUNT).fill('active'));
    client.kill('SIGKILL');
    await ended;
    await eventually(
      async () => (await all()).every(({ status }) => status === 'stopped'),
      'the ends of all sessions',
      MANY_MS / 2,
    );
    for (const { id } of await all()) {
      expect(await read(`/${id}`)).toMatchObject({ ended_reason: 'idle' });
    }
  },
  MANY_MS,
);

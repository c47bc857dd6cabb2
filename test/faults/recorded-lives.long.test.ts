import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { lifeText } from '#src/apps/cli/commands/life/life.ts';
import { bss, bssWith } from '#test/support/clients/command-line.ts';
import { expectAsRecorded, readLives } from '#test/support/service/recorded-lives.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';

/**
 * Lives of every kind, made by a service with simulated browsers that is also killed. The unit
 * tests replay those in FOLDER; `UPDATE_GOLDEN=1` adds the kinds that it lacks. A file there is
 * never written again: it is what an earlier build has stored.
 */
const FOLDER = fileURLToPath(new URL('../unit/cli/lives/', import.meta.url));

const ENV = {
  POOL_MIN_IDLE: '0',
  POOL_MAX: '4',
  QUEUE_AFTER: '100ms',
  QUEUE_TIMEOUT: '20s',
};

let service: RunningService;
let folder: string;
/** Ids of sessions by the kind of their life, which is the name of its file. */
const made = new Map<string, string>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bss-lives-'));
  service = await startService(ENV);
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

type Session = { id: string; status: string; ended_reason: string | null; cdp_url: string };

async function create(body: object = {}, headers: object = {}): Promise<Session> {
  const answer = await service.request(
    'POST',
    '/api/sessions',
    { duration: '1h', ...body },
    headers,
  );
  expect([201, 202]).toContain(answer.status);
  return answer.body;
}
const createAtOnce = () => create({}, { prefer: 'respond-async' });

async function reaches(id: string, ...wanted: string[]): Promise<Session> {
  return eventually(
    async () => {
      const { body } = await service.request('GET', `/api/sessions/${id}`);
      return wanted.includes(body.status) && body;
    },
    `${id} is ${wanted.join(' or ')}`,
  );
}

async function stop(id: string): Promise<void> {
  expect((await service.request('DELETE', `/api/sessions/${id}`)).status).toBe(200);
  await reaches(id, 'stopped');
}

/** Remembers the life once the session has ended for that reason. */
async function ended(kind: string, id: string, reason: string): Promise<void> {
  expect((await reaches(id, 'stopped', 'failed')).ended_reason).toBe(reason);
  made.set(kind, id);
}

async function command({ cdp_url: url }: Session, method: string): Promise<void> {
  const client = new WebSocket(url);
  await once(client, 'open');
  const closed = once(client, 'close');
  client.send(JSON.stringify({ id: 1, method }));
  await closed;
}

test('sessions end for every reason, also of a service that is killed', async () => {
  // These two end by themselves after a minute, in which the next three end.
  const expiring = await create({ duration: '1m' });
  const idle = await create({ idle_timeout: '1m' });
  const stopped = await create({ session_name: 'checkout', labels: { team: 'tests' } });
  await stop(stopped.id);
  await ended('stopped-by-user', stopped.id, 'user');
  const crashing = await create();
  await command(crashing, 'Browser.crash');
  await ended('browser-crashed', crashing.id, 'browser_crashed');
  const closing = await create();
  await command(closing, 'Browser.close');
  await ended('browser-closed', closing.id, 'browser_closed');
  await ended('expired', expiring.id, 'expired');
  await ended('idle', idle.id, 'idle');

  const extended = await create();
  const path = `/api/sessions/${extended.id}`;
  const answer = await service.request('POST', `${path}/extend`, { duration: '30m' });
  expect([answer.status, answer.body]).toEqual([200, expect.anything()]);
  expect((await service.request('GET', `${path}/access`)).status).toBe(200);
  const others = [await create(), await create(), await create()];
  const waiting = await createAtOnce();
  await reaches(waiting.id, 'queued');
  await stop(extended.id);
  made.set('extended-and-accessed', extended.id);
  await reaches(waiting.id, 'active');
  await ended('queue-timeout', (await createAtOnce()).id, 'queue_timeout');
  await stop(waiting.id);
  made.set('queued-then-stopped', waiting.id);
  for (const { id } of others) await stop(id);

  const lost = await create();
  await service.end('SIGKILL');
  await service.startAgain({ SIMULATED_LAUNCH_MS: '60s' });
  await ended('server-lost', lost.id, 'server_lost');
  const launching = await createAtOnce();
  await eventually(async () => {
    const [life] = await readLives(service, [launching.id]);
    return life?.records.some(({ subject }) => subject.endsWith('.launching'));
  }, 'its browser is being launched');
  await service.end('SIGKILL');
  await service.startAgain({ QUEUE_TIMEOUT: '60s' });
  const survived = await reaches(launching.id, 'active', 'failed', 'stopped');
  if (survived.status === 'active') await stop(launching.id);
  made.set('killed-while-launching', launching.id);

  await service.end('SIGTERM');
  await service.startAgain({ SIMULATED_FAIL_RATE: '1' });
  await ended('launch-failed', (await createAtOnce()).id, 'launch_failed');
});

test('each of their lives replays to the recorded states', async () => {
  const lives = await readLives(service, made.values());
  expectAsRecorded(lives);
  const known = await readdir(FOLDER);
  if (process.env['UPDATE_GOLDEN'] === '1')
    for (const [at, kind] of [...made.keys()].entries())
      if (!known.includes(`${kind}.json`) && lives[at] !== undefined)
        await writeFile(join(FOLDER, `${kind}.json`), lifeText(lives[at]));
  const files = (await readdir(FOLDER)).map((name) => name.replace(/\.json$/, ''));
  expect(files).toEqual(expect.arrayContaining([...made.keys()]));
});

test('bss exports a life, and replays it without a service', async () => {
  const id = made.get('extended-and-accessed') ?? '';
  const printed = await bss(service, 'session', 'export', id);
  expect(printed.stderr).toBe('');
  const file = join(folder, 'life.json');
  const written = await bss(service, 'session', 'export', id, '--out', file);
  expect([written.code, written.stdout]).toEqual([0, expect.stringContaining('bss replay')]);
  const printedAt = /"exported_at":"[^"]*"/;
  await writeFile(join(folder, 'printed.json'), printed.stdout);

  const alone = { DATA_DIR: join(folder, 'none') };
  const replayed = await bssWith(alone, 'replay', file, folder, '--json');
  expect(replayed.code).toBe(0);
  const { agrees, lives } = JSON.parse(replayed.stdout);
  expect([agrees, lives.map((life: { session_id: string }) => life.session_id)]).toEqual([
    true,
    [id, id, id],
  ]);
  const [life] = await readLives(service, [id]);
  const expected = life === undefined ? '' : lifeText(life);
  expect(printed.stdout.replace(printedAt, '')).toBe(expected.replace(printedAt, ''));

  const unknown = await bss(service, 'session', 'export', 'ses_none', '--json');
  expect([unknown.code, JSON.parse(unknown.stderr).error]).toEqual([1, 'SESSION_NOT_FOUND']);
});

import { watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { allOf, startShop } from '#test/support/clients/shop.ts';
import { filesBelow } from '#test/support/scratch.ts';
import { buildAndStartS3 } from '#test/support/servers/real-s3.ts';
import { descendantsOf } from '#test/support/service/processes.ts';
import {
  onPage,
  reaches,
  startRealService,
  temporaryFiles,
  tracesOf,
  type CreatedSession,
  type RealService,
} from '#test/support/service/real-session.ts';
import { openLog } from '#test/support/service/service-log.ts';
import { eventually } from '#test/support/service/service.ts';
import { isSoak } from '#test/support/soak.ts';

/**
 * The service, NATS, Redis or the object store is killed with -9 at each step of a profile's save,
 * and the browser while it closes: the last version, or the next one, is there and whole, the
 * profile is free, and nothing is left over.
 *
 * `npm run test:nightly` kills each of them at one step, `npm run soak` at all: only the soak finds
 * a fault of one of them at another step.
 */

type Profiled = CreatedSession & { profile: { version: number } };
/** A session that ends, the process of its browser, and the version that it began with. */
type Ending = { id: string; chromium: number; begunWith: number };

let s3: Awaited<ReturnType<typeof buildAndStartS3>>;
let shop: Awaited<ReturnType<typeof startShop>>;
let service: RealService;
let id: string;
beforeAll(async () => {
  s3 = await buildAndStartS3();
  shop = await startShop();
  service = await startRealService({
    ...s3.environment,
    POOL_MIN_IDLE: '0',
    // No browser waits for the next session: those that are left would be hidden among them.
    POOL_MAX_IDLE: '0',
  });
  id = (await service.request('POST', '/api/profiles', { name: 'shop' })).body.id;
  const first = await create();
  // Large enough for each step to take a while.
  await logIn(first, 'v1', 20);
  await service.request('DELETE', `/api/sessions/${first.id}`);
  await reaches(service, first.id, 'stopped');
  expect(await latest()).toBe(1);
  // The first file of a soak builds the S3 server.
}, 900_000);
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  shop?.[Symbol.dispose]();
  await s3?.[Symbol.asyncDispose]();
});

async function create(save = true): Promise<Profiled> {
  const { status, body } = await service.request('POST', '/api/sessions', {
    profile: { id, save },
  });
  expect([status, body.status]).toEqual([201, 'active']);
  return body;
}
async function logIn(session: CreatedSession, name: string, megabytes = 0): Promise<void> {
  await onPage(session, async (page) => {
    await page.goto(`${shop.origin}/log-in?as=${encodeURIComponent(name)}`);
    await page.evaluate(`megabytes(${megabytes})`);
    expect(await page.evaluate(`store(${JSON.stringify(name)})`)).toBe('stored');
  });
}
async function profile() {
  return (await service.request('GET', `/api/profiles/${id}`)).body;
}
const latest = async (): Promise<number> => (await profile()).latest_version;
const spoolFolder = () => join(service.dataDir, 'profiles');
/** The archives that the object store has whole. */
async function archives(): Promise<string[]> {
  const below = await filesBelow(s3.folder);
  return below
    .map(({ parentPath, name }) => join(parentPath, name))
    .flatMap((path) => /profiles\/.*\/([0-9a-f]{64})$/.exec(path)?.[1] ?? []);
}

/**
 * Before the end: the archives that there were, and the browser's workload. Since then: whether a
 * profile has been spooled, which takes a moment.
 */
type Seen = { before: string[]; workloadId: string; hasSpooled: () => boolean };
type Step = [name: string, isReached: (seen: Seen) => Promise<boolean>];

const steps: Step[] = [
  ['has been asked to stop', async () => true],
  ['is reading its profile', async ({ hasSpooled }) => hasSpooled()],
  [
    'has stored its profile',
    async ({ before }) => (await archives()).some((one) => !before.includes(one)),
  ],
];
/** Its browser stands still, so that it does not close before it is killed. */
const CLOSING: Step = [
  'is closing its browser',
  async ({ workloadId: id }) => {
    await using log = await openLog(service);
    const last = await log.eventStore.readLast<'workload'>({ kind: 'workload', id });
    return last?.type === 'workload.terminating';
  },
];

/** A session that has logged in anew ends, and is at the step. */
async function endUntil(name: string, step: Step): Promise<Ending> {
  const before = await archives();
  const session = await create();
  const begunWith = session.profile.version;
  await logIn(session, name);
  const workloadId = session.autoscaler_workload_id;
  const { chromium } = tracesOf(service, workloadId);
  if (step === CLOSING) process.kill(chromium, 'SIGSTOP');
  let isSpooled = false;
  const spooling = watch(spoolFolder(), { persistent: false }, () => (isSpooled = true));
  expect((await service.request('DELETE', `/api/sessions/${session.id}`)).status).toBe(200);
  const [, isReached] = step;
  const seen = { before, workloadId, hasSpooled: () => isSpooled };
  await eventually(() => isReached(seen), 'the step');
  spooling.close();
  return { id: session.id, chromium, begunWith };
}

/** The version is the one before or the next one, and a browser begins with all of it. */
async function isWhole(begunWith: number, name: string): Promise<void> {
  const newest = await latest();
  expect([begunWith, begunWith + 1]).toContain(newest);
  const next = await create(false);
  const found = await onPage(next, async (page) => {
    await page.goto(shop.origin);
    return (await page.evaluate('known()')) as { local: string };
  });
  expect(found).toEqual(allOf(newest === begunWith ? found.local : name));
  if (newest === begunWith) expect(found.local).not.toBe(name);
  await service.request('DELETE', `/api/sessions/${next.id}`);
  await reaches(service, next.id, 'stopped');
}

async function nothingIsLeft(): Promise<void> {
  expect(await temporaryFiles(service)).toEqual([]);
  expect(await readdir(spoolFolder())).toEqual([]);
  expect((await profile()).saving_session_id).toBeNull();
}

/** Ends a program of the service; the service starts it again. */
function killProgram(name: string): void {
  const program = descendantsOf(service.pid).find(({ command }) => command.includes(name));
  process.kill(program?.pid ?? Number.NaN, 'SIGKILL');
}
async function untilStopped(id: string): Promise<void> {
  await eventually(async () => {
    const { status, body } = await service.request('GET', `/api/sessions/${id}`);
    return status === 200 && body.status === 'stopped';
  }, 'the session has stopped');
}

/** Kills a part, and waits until what was under way has ended. */
const kills: { part: string; kill: (ending: Ending) => Promise<void>; at?: Step[] }[] = [
  {
    part: 'the service',
    async kill({ id: sessionId }) {
      await service.end('SIGKILL');
      await service.startAgain();
      await eventually(
        async () => (await profile()).saving_session_id === null,
        'no session saves it any more',
      );
      const { body } = await service.request('GET', `/api/sessions/${sessionId}`);
      expect(['stopped', 'failed']).toContain(body.status);
    },
  },
  {
    part: 'NATS',
    async kill({ id: sessionId }) {
      killProgram('nats-server');
      await untilStopped(sessionId);
    },
  },
  {
    part: 'the object store',
    async kill({ id: sessionId }) {
      await s3.kill();
      await untilStopped(sessionId);
      await s3.restart();
    },
  },
  {
    part: 'Redis',
    async kill({ id: sessionId }) {
      killProgram('redis-server');
      await untilStopped(sessionId);
    },
  },
  {
    part: 'the browser',
    // It is gone at the other steps.
    at: [CLOSING],
    async kill({ id: sessionId, chromium, begunWith }) {
      process.kill(chromium, 'SIGKILL');
      await untilStopped(sessionId);
      // What it had in memory is lost, so its profile is not saved.
      expect(await latest()).toBe(begunWith);
    },
  },
];

const rows = kills.flatMap(({ part, kill, at = steps }, index) =>
  at
    .filter((_, step) => isSoak || step === index % at.length)
    .map((step) => ({ part, kill, name: step[0], step })),
);

test.each(rows)(
  'a kill of $part while a session $name leaves a whole version and nothing else',
  async ({ part, kill, step, ...row }) => {
    const name = `${part} ${row.name}`;
    const ending = await endUntil(name, step);
    await kill(ending);
    await isWhole(ending.begunWith, name);
    await nothingIsLeft();
  },
);

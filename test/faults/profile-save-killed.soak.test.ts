import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { allOf, startShop } from '#test/support/clients/shop.ts';
import { s3Server, startS3 } from '#test/support/servers/real-s3.ts';
import { descendantsOf } from '#test/support/service/processes.ts';
import {
  onPage,
  reaches,
  startRealService,
  temporaryFiles,
  type CreatedSession,
  type RealService,
} from '#test/support/service/real-session.ts';
import { eventually } from '#test/support/service/service.ts';
import { isSoak } from '#test/support/soak.ts';

/**
 * The service, NATS or the object store is killed with -9 at each step of a profile's save: the
 * last version, or the next one, is there and whole, the profile is free, and nothing is left over.
 *
 * `npm run test:long` kills each of them at one step, `npm run soak` at all three: only the soak
 * finds a fault of one of them at another step.
 */

const program = s3Server();
if (program === null) throw new Error('no S3 server: Go builds versitygw for this test');

type Profiled = CreatedSession & { profile: { version: number } };

let s3: Awaited<ReturnType<typeof startS3>>;
let shop: Awaited<ReturnType<typeof startShop>>;
let service: RealService;
let id: string;
beforeAll(async () => {
  s3 = await startS3(program);
  shop = await startShop();
  const { bucket, region, endpoint, credentials } = s3.options;
  service = await startRealService({
    OBJECT_STORE: `s3://${bucket}/objects`,
    ARCHIVE_S3_ENDPOINT: endpoint,
    ARCHIVE_S3_REGION: region,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
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
});
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
const spooled = () => readdir(join(service.dataDir, 'profiles'));
/** The archives that the object store has whole. */
async function archives(): Promise<string[]> {
  const below = await readdir(s3.folder, { recursive: true });
  return below.flatMap((path) => /profiles\/.*\/([0-9a-f]{64})$/.exec(path)?.[1] ?? []);
}

const steps: [name: string, isReached: (before: string[]) => Promise<boolean>][] = [
  ['has been asked to stop', async () => true],
  ['is reading its profile', async () => (await spooled()).length > 0],
  [
    'has stored its profile',
    async (before) => (await archives()).some((one) => !before.includes(one)),
  ],
];

/** A session that has logged in anew ends, and is at the step. */
async function endUntil(name: string, isReached: (before: string[]) => Promise<boolean>) {
  const before = await archives();
  const session = await create();
  const begunWith = session.profile.version;
  await logIn(session, name);
  expect((await service.request('DELETE', `/api/sessions/${session.id}`)).status).toBe(200);
  await eventually(() => isReached(before), 'the step');
  return { session, begunWith };
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
  expect(await spooled()).toEqual([]);
  expect((await profile()).saving_session_id).toBeNull();
}

/** Kills a part, and waits until what was under way has ended. */
const kills: Record<string, (session: Profiled) => Promise<void>> = {
  async service({ id: sessionId }) {
    await service.end('SIGKILL');
    await service.startAgain();
    await eventually(
      async () => (await profile()).saving_session_id === null,
      'no session saves it any more',
    );
    const { body } = await service.request('GET', `/api/sessions/${sessionId}`);
    expect(['stopped', 'failed']).toContain(body.status);
  },
  async NATS({ id: sessionId }) {
    const nats = descendantsOf(service.pid).find(({ command }) => command.includes('nats-server'));
    process.kill(nats?.pid ?? Number.NaN, 'SIGKILL');
    await eventually(
      async () =>
        (await service.request('GET', `/api/sessions/${sessionId}`)).body.status === 'stopped',
      'the session has stopped',
    );
  },
  async 'object store'({ id: sessionId }) {
    await s3.kill();
    await reaches(service, sessionId, 'stopped', 120_000);
    await s3.restart();
  },
};

const rows = Object.entries(kills).flatMap(([part, kill], at) =>
  steps
    .filter((_, step) => isSoak || step === at)
    .map(([step, isReached]) => ({ part, kill, step, isReached })),
);

test.each(rows)(
  'a kill of the $part while a session $step leaves a whole version and nothing else',
  async ({ part, kill, step, isReached }) => {
    const name = `${part} ${step}`;
    const { session, begunWith } = await endUntil(name, isReached);
    await kill(session);
    await isWhole(begunWith, name);
    await nothingIsLeft();
  },
);

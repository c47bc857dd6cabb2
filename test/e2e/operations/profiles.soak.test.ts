import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { connect as connectPuppeteer } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { allOf, startShop, startShopIn } from '#test/support/clients/shop.ts';
import {
  containerOf,
  docker,
  hasDocker,
  testNetwork,
} from '#test/support/servers/docker-engine.ts';
import {
  onPage,
  reaches,
  startRealService,
  temporaryFiles,
  tracesOf,
  type CreatedSession,
  type RealService,
} from '#test/support/service/real-session.ts';
import { eventually } from '#test/support/service/service.ts';
import { isSoak } from '#test/support/soak.ts';

/**
 * What a person leaves in one session is there in the next one, with real browsers.
 *
 * What the adapter of the browsers does, like the archive of a profile, CI tests with either kind;
 * what the service decides by itself, with the kind that `inCiWith` names. The soak runs all with
 * both.
 */

type Kind = 'process' | 'docker';
const kinds: Kind[] = hasDocker() ? ['process', 'docker'] : ['process'];

type Profiled = CreatedSession & {
  profile: { version: number; saved_version: number };
  ended_reason: string;
};

describe.each(kinds)('profiles of %s browsers', (kind) => {
  let service: RealService;
  let shop: Awaited<ReturnType<typeof startShop>>;
  /** Of the sessions whose containers have the shop. */
  const withShop = new Set<string>();
  beforeAll(async () => {
    shop = await startShop();
    service = await startRealService({
      BROWSERS: kind,
      DOCKER_NETWORK: testNetwork(),
      POOL_MIN_IDLE: '0',
      POOL_MAX: '4',
      PROFILE_VERSIONS: '3',
    });
  });
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]();
    shop?.[Symbol.dispose]();
  });

  async function createProfile(): Promise<string> {
    return (await service.request('POST', '/api/profiles', { name: 'shop' })).body.id;
  }
  async function create(profile: object): Promise<Profiled> {
    const { status, body } = await service.request('POST', '/api/sessions', { profile });
    expect([status, body.status]).toEqual([201, 'active']);
    return body;
  }
  async function end({ id }: CreatedSession): Promise<Profiled> {
    await service.request('DELETE', `/api/sessions/${id}`);
    return (await reaches(service, id, 'stopped')) as unknown as Profiled;
  }
  async function read(id: string) {
    return (await service.request('GET', `/api/profiles/${id}`)).body;
  }
  function shopOf(session: CreatedSession): string {
    if (kind === 'process') return shop.origin;
    const isThere = withShop.has(session.id);
    withShop.add(session.id);
    return isThere
      ? 'http://127.0.0.1:8000'
      : startShopIn(containerOf(session.autoscaler_workload_id));
  }
  /** Opens the shop. */
  async function inShop<Result>(session: CreatedSession, path: string, script: string) {
    const origin = shopOf(session);
    return onPage(session, async (page) => {
      await page.goto(origin + path);
      return (await page.evaluate(script)) as Result;
    });
  }
  /** Logs in at the shop and stores something of every kind there. */
  async function logIn(session: CreatedSession, name: string): Promise<void> {
    const stored = await inShop(session, `/log-in?as=${name}`, `store(${JSON.stringify(name)})`);
    expect(stored).toBe('stored');
  }
  /** What the shop still knows of the browser. */
  const known = (session: CreatedSession) =>
    inShop<Record<string, unknown>>(session, '/', 'known()');
  function killBrowser(session: CreatedSession): void {
    if (kind === 'docker') return void docker('kill', containerOf(session.autoscaler_workload_id));
    // Its helpers end with it.
    process.kill(tracesOf(service, session.autoscaler_workload_id).chromium, 'SIGKILL');
  }
  /** A test that CI runs with one kind of browsers: with the other where there is no Docker. */
  function inCiWith(one: Kind, title: string, run: () => Promise<void>): void {
    if (isSoak || kind === one || !kinds.includes(one)) test(title, run);
  }

  test('a log-in is there in the next session, of all kinds, and in none without it', async () => {
    const id = await createProfile();
    const first = await create({ id, save: true });
    await logIn(first, 'ada');
    expect((await end(first)).profile.saved_version).toBe(1);
    expect(await read(id)).toMatchObject({
      latest_version: 1,
      versions: [
        {
          origins: [new URL(shopOf(first)).origin],
          cookies: [
            { domain: '127.0.0.1', name: 'as' },
            { domain: '127.0.0.1', name: 'kept' },
          ],
          browser_version: expect.stringMatching(/^\d+\./),
        },
      ],
    });
    const second = await create({ id });
    expect(await known(second)).toEqual(allOf('ada'));
    const plain = await create({ id: await createProfile() });
    expect(await known(plain)).toMatchObject({ cookies: [''], local: null, indexed: null });
    await Promise.all([end(second), end(plain)]);
  });

  inCiWith(
    'process',
    'an older version can be taken up again, and is saved as the newest',
    async () => {
      const id = await createProfile();
      for (const name of ['ada', 'bob']) {
        const session = await create({ id, save: true });
        await logIn(session, name);
        await end(session);
      }
      const older = await create({ id, version: 1, save: true });
      expect(await known(older)).toEqual(allOf('ada'));
      expect((await end(older)).profile.saved_version).toBe(3);
      const newest = await create({ id });
      expect(await known(newest)).toEqual(allOf('ada'));
      await end(newest);
    },
  );

  test('it is saved where the browser is closed by its client', async () => {
    const id = await createProfile();
    const session = await create({ id, save: true });
    await logIn(session, 'cyd');
    const browser = await connectPuppeteer({ browserWSEndpoint: session.cdp_url });
    await browser.close();
    const ended = await reaches(service, session.id, 'stopped');
    expect(ended.ended_reason).toBe('browser_closed');
    const next = await create({ id });
    expect(await known(next)).toEqual(allOf('cyd'));
    await end(next);
  });

  inCiWith(
    'process',
    'of two sessions that would save it, one is refused with the other’s id',
    async () => {
      const id = await createProfile();
      const profile = { id, save: true };
      const both = await Promise.all(
        [1, 2].map(() => service.request('POST', '/api/sessions', { profile })),
      );
      const [made, refused] = both.toSorted((one, other) => one.status - other.status);
      expect(made?.status).toBe(201);
      expect(refused).toMatchObject({
        status: 409,
        body: { error: 'PROFILE_IN_USE', context: { profile_id: id, session_id: made?.body.id } },
      });
      await end(made?.body);
    },
  );

  test('it is saved on request, and the session goes on', async () => {
    const id = await createProfile();
    const session = await create({ id, save: true });
    await logIn(session, 'dot');
    const path = `/api/sessions/${session.id}/profile/save`;
    const saved = await service.request('POST', path);
    expect([saved.status, saved.body]).toMatchObject([200, { version: 1, profile_id: id }]);
    expect(await known(session)).toEqual(allOf('dot'));
    killBrowser(session);
    await reaches(service, session.id, 'failed');
    const next = await create({ id });
    // What the browser had not written yet, like its local storage, is there too; but not always
    // the script of a worker that it had just been given.
    const { worker: _, ...written } = allOf('dot');
    expect(await known(next)).toMatchObject(written);
    await end(next);
    expect((await service.request('POST', path)).body.error).toBe('SESSION_NOT_ACTIVE');
  });

  inCiWith('process', 'it is saved by a shutdown that ends the session', async () => {
    const id = await createProfile();
    const session = await create({ id, save: true });
    await logIn(session, 'fay');
    expect(await service.end('SIGTERM')).toBe(0);
    await service.startAgain();
    const next = await create({ id });
    expect(await known(next)).toEqual(allOf('fay'));
    await end(next);
  });

  test.runIf(kind === 'docker')('it is saved by the service that adopted the browser', async () => {
    const id = await createProfile();
    const session = await create({ id, save: true });
    await logIn(session, 'gus');
    // As a kill in the middle of a save on request leaves it.
    docker('pause', containerOf(session.autoscaler_workload_id));
    await service.end('SIGKILL');
    await service.startAgain();
    await reaches(service, session.id, 'active');
    expect((await end(session)).profile.saved_version).toBe(1);
    const next = await create({ id });
    expect(await known(next)).toEqual(allOf('gus'));
    await end(next);
  });

  // profile-save-killed.soak.test.ts kills browsers that are processes, and their service.
  inCiWith(
    'docker',
    'a kill of the browser or the service leaves the last version, and nothing else',
    async () => {
      const id = await createProfile();
      const first = await create({ id, save: true });
      await logIn(first, 'ada');
      await end(first);

      const crashed = await create({ id, save: true });
      await logIn(crashed, 'eve');
      killBrowser(crashed);
      await reaches(service, crashed.id, 'failed');
      expect(await read(id)).toMatchObject({ latest_version: 1, saving_session_id: null });

      const killed = await create({ id, save: true });
      await logIn(killed, 'eve');
      await service.request('DELETE', `/api/sessions/${killed.id}`);
      await service.end('SIGKILL');
      await service.startAgain();
      await eventually(
        async () => (await read(id)).saving_session_id === null,
        'no session saves it any more',
      );
      expect(await temporaryFiles(service)).toEqual([]);
      expect(await readdir(join(service.dataDir, 'profiles'))).toEqual([]);
      const next = await create({ id, save: true });
      const name = next.profile.version === 1 ? 'ada' : 'eve';
      expect(await known(next)).toEqual(allOf(name));
      await end(next);
    },
  );
});

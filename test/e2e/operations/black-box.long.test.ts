import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { BlackBox } from '#events/session/black-box.ts';
import { bss } from '#test/support/clients/command-line.ts';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import {
  createWarm,
  onPage,
  reaches,
  startRealService,
  tracesOf,
  type CreatedSession,
  type RealService,
} from '#test/support/service/real-session.ts';

/** What sessions' ends tell of what real browsers did. */

const TOKEN = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl';
const SECRETS = [TOKEN, 'hunter2', 's3cr3t', 'typed-by-a-person'];
/** The dialog comes last: when it is shown, all else has happened. */
const SCRIPT = `
  console.error('login failed for token=s3cr3t at', 'https://id.test/cb?code=${TOKEN}');
  setTimeout(() => { throw new TypeError('cart is undefined'); });
  fetch(location.origin + '/missing?session=s3cr3t')
    .then(() => setTimeout(() => prompt('Name?', 'typed-by-a-person'), 50));
`;

/** A page that is blank until `/when` is answered. */
const NOISE = `
  const canvas = document.body.appendChild(document.createElement('canvas'));
  [canvas.width, canvas.height] = [1200, 700];
  fetch('/when').then(() => {
    const pixels = new ImageData(1200, 700);
    for (let at = 0; at < pixels.data.length; at += 1)
      pixels.data[at] = at % 4 === 3 ? 255 : 255 * Math.random();
    canvas.getContext('2d').putImageData(pixels, 0, 0);
    requestAnimationFrame(() => requestAnimationFrame(() => fetch('/shown')));
  });
`;
/** A picture of noise has more bytes than that, a blank one fewer. */
const NOISE_BYTES_MIN = 20_000;
const PAGES: Record<string, string> = {
  shop: `<body>shop<script>${SCRIPT}</script>`,
  noise: `<body><script>${NOISE}</script>`,
};
const showNoise = Promise.withResolvers<void>();

let service: RealService;
let site: Server;
let origin: string;
beforeAll(async () => {
  site = createServer((request, response) => {
    const [, path = ''] = /^\/(\w+)/.exec(request.url ?? '') ?? [];
    const page = PAGES[path];
    response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html' });
    if (path === 'when') void showNoise.promise.then(() => response.end());
    else response.end(page ?? '');
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  origin = `127.0.0.1:${(site.address() as AddressInfo).port}`;
  service = await startRealService({ POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '2', POOL_MAX: '4' });
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  site?.close();
});

/** Opens the shop, which fails in every way, and answers its dialog. */
async function visitShop(session: CreatedSession): Promise<void> {
  await onPage(session, async (page) => {
    const answered = Promise.withResolvers<void>();
    page.once('dialog', (dialog) => void dialog.dismiss().then(() => answered.resolve()));
    await page.goto(`http://ann:hunter2@${origin}/shop?token=s3cr3t#part`);
    await answered.promise;
  });
}

async function endOf(id: string): Promise<{ blackBox?: BlackBox }> {
  const { body } = await service.request('GET', `/api/sessions/${id}/history?limit=500`);
  const events = body.events as unknown as { type: string; data: { blackBox?: BlackBox } }[];
  return events.find(({ type }) => /\.(?:stopped|failed)$/.test(type))?.data ?? {};
}

function thumbnailOf(id: string): Promise<Response> {
  const headers = { authorization: `Bearer ${DEV_KEY}` };
  return fetch(`${service.apiUrl}/api/sessions/${id}/thumbnail`, { headers });
}

async function stop(id: string): Promise<void> {
  expect((await service.request('DELETE', `/api/sessions/${id}`)).status).toBe(200);
  await reaches(service, id, 'stopped');
}

/**
 * A session that visits the shop and is stopped. A stop gives the last picture and the memory half
 * a second, which a busy machine may not have once: one of three sessions has to have both.
 */
async function endWithPicture() {
  for (let left = 2; ; left -= 1) {
    const session = await createWarm(service);
    await visitShop(session);
    await stop(session.id);
    const { blackBox } = await endOf(session.id);
    const isWhole =
      blackBox?.thumbnailBytes !== undefined && blackBox.memoryPeakBytes !== undefined;
    if (isWhole || left === 0) return { session, blackBox };
  }
}

test('a stopped session tells what its page did, without secrets', async () => {
  const { session, blackBox } = await endWithPicture();
  expect(blackBox?.address).toBe(`http://${origin}/shop`);
  expect(blackBox?.consoleErrors).toMatchObject([
    { text: expect.stringContaining('login failed for token=…') as string },
  ]);
  expect(blackBox?.exceptions).toMatchObject([
    { text: expect.stringContaining('Uncaught TypeError: cart is undefined') as string },
  ]);
  expect(blackBox?.failedRequests).toContainEqual(
    expect.objectContaining({
      text: expect.stringContaining('404') as string,
      address: `http://${origin}/missing`,
    }),
  );
  expect(blackBox?.dialogs).toMatchObject([{ kind: 'prompt', text: 'Name?', accepted: false }]);

  expect(blackBox?.memoryPeakBytes).toBeGreaterThan(10_000_000);

  const path = `/api/sessions/${session.id}`;
  // It is stored meanwhile.
  const picture = await eventually(async () => {
    const answer = await thumbnailOf(session.id);
    return answer.status === 200 && Buffer.from(await answer.arrayBuffer());
  }, 'the last picture is stored');
  expect(picture.subarray(0, 3).toString('hex')).toBe('ffd8ff');
  expect(picture.length).toBe(blackBox?.thumbnailBytes);
  const why = await service.request('GET', `${path}/why`);
  expect(why.body.black_box).toMatchObject({
    address: `http://${origin}/shop`,
    signal: null,
    told: expect.arrayContaining([
      expect.stringContaining('the page’s last error was: Uncaught TypeError') as string,
    ]) as string[],
  });
  const said = await bss(service, 'why', session.id);
  expect(said.stdout).toContain('the page’s last error was: Uncaught TypeError: cart is undefined');
  const history = await service.request('GET', `${path}/history?limit=500`);
  for (const secret of SECRETS) {
    expect(JSON.stringify([why.body, history.body])).not.toContain(secret);
    expect(said.stdout).not.toContain(secret);
  }
});

test('a session whose browser is killed tells what was before, and the signal', async () => {
  const session = await createWarm(service);
  await visitShop(session);
  process.kill(tracesOf(service, session.autoscaler_workload_id).chromium, 'SIGKILL');
  await reaches(service, session.id, 'failed');
  const { blackBox } = await endOf(session.id);
  expect(blackBox).toMatchObject({
    address: `http://${origin}/shop`,
    signal: 'SIGKILL',
    exceptions: [{ text: expect.stringContaining('cart is undefined') as string }],
  });
});

test('a page that crashes is counted, and one that cannot be loaded has its address', async () => {
  const session = await createWarm(service);
  await onPage(session, async (page) => {
    await page.goto('http://127.0.0.1:9/gone?token=s3cr3t').catch(() => undefined);
    const other = await page.browser().newPage();
    const crashed = once(other as never, 'error');
    void other.goto('chrome://crash').catch(() => undefined);
    await crashed;
  });
  await stop(session.id);
  const { blackBox } = await endOf(session.id);
  expect(blackBox?.pageCrashes).toBe(1);
  expect(JSON.stringify(blackBox?.failedRequests)).toContain('http://127.0.0.1:9/gone');
  expect(JSON.stringify(blackBox)).not.toContain('s3cr3t');
});

test('a session that wants none tells nothing', async () => {
  const session = await createWarm(service, { black_box: false });
  await visitShop(session);
  await stop(session.id);
  expect(await endOf(session.id)).not.toHaveProperty('blackBox');
  const why = await service.request('GET', `/api/sessions/${session.id}/why`);
  expect(why.body.black_box).toBeNull();
  const picture = await thumbnailOf(session.id);
  expect([picture.status, await picture.json()]).toMatchObject([
    404,
    { error: 'THUMBNAIL_NOT_FOUND' },
  ]);
});

test('what is shown while a person has a hand-off is in no picture', async () => {
  const session = await createWarm(service);
  const shown = new Promise<void>((resolve) => {
    site.on('request', ({ url }) => url === '/shown' && resolve());
  });
  await onPage(session, (page) => page.goto(`http://${origin}/noise`));
  const handoffs = `/api/sessions/${session.id}/handoffs`;
  const asked = await service.request('POST', handoffs, { instructions: 'Sign in.' });
  const taken = await service.request('POST', `${handoffs}/${String(asked.body.id)}/take`, {});
  expect(taken.status).toBe(200);
  showNoise.resolve();
  await shown;
  await stop(session.id);
  const { blackBox } = await endOf(session.id);
  expect(blackBox?.address).toBe(`http://${origin}/noise`);
  // That of the blank page of before, if there is one.
  expect(blackBox?.thumbnailBytes ?? 0).toBeLessThan(NOISE_BYTES_MIN);
});

test('a page that writes without end costs its session nothing but entries', async () => {
  const session = await createWarm(service);
  await onPage(session, async (page) => {
    await page.evaluate(() => {
      for (let n = 0; n < 2_000; n += 1) console.error(`flood ${n}`);
    });
    await page.evaluate((text) => console.error(text), 'x'.repeat(4_000_000));
    expect(await page.evaluate(() => 1 + 1)).toBe(2);
  });
  await stop(session.id);
  const { blackBox } = await endOf(session.id);
  expect(blackBox?.dropped).toBeGreaterThan(0);
  expect(JSON.stringify(blackBox).length).toBeLessThanOrEqual(16_384);
});

import { connect, type Browser } from 'puppeteer-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient, type Client } from '#src/apps/client/client.ts';
import {
  colourOf,
  openScreen,
  startRealService,
  type RealService,
} from '#test/support/service/real-session.ts';
import { note, notesOf, record } from '#test/support/clients/recording-page.ts';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import { refusal } from '#test/support/gateway.fixture.ts';

const GREEN = '#1ec828';

/** Hand-offs and shares of a real browser with a real screen, through the whole service. */

let service: RealService;
let client: Client;
let bea: { authorization: string };
beforeAll(async () => {
  service = await startRealService({ POOL_MIN_IDLE: '1', POOL_MAX: '2' });
  client = createClient({ url: service.apiUrl, apiKey: DEV_KEY });
  const issued = await service.request('POST', '/api/keys', { role: 'member', user_id: 'bea' });
  bea = { authorization: `Bearer ${issued.body.api_key}` };
});
afterAll(() => service?.[Symbol.asyncDispose]());

const post = (path: string, body: object | undefined, who: object = {}) =>
  service.request('POST', `/api/sessions/${path}`, body, who);

/** The session's page, which notes keys and commands in their order. */
async function drive(cdpUrl: string): Promise<{ browser: Browser; page: Page }> {
  const browser = await connect({ browserWSEndpoint: cdpUrl, defaultViewport: null });
  const [page] = await browser.pages();
  if (page === undefined) throw new Error('the browser has no page');
  await record(page);
  return { browser, page };
}
type Page = Awaited<ReturnType<Browser['pages']>>[number];

const press = (screen: Awaited<ReturnType<typeof openScreen>>, text: string) => {
  for (const isDown of [true, false]) screen.rfb.key(text.charCodeAt(0), isDown);
};

test('a person steers alone while automation waits, and automation goes on in order', async () => {
  await using session = await client.sessions.create({ duration: '10m' });
  const { browser, page } = await drive(session.cdp_url ?? '');
  // The screen tells that the page has the key, while no automation can ask the page.
  await page.evaluate(`document.addEventListener('keydown', ({ key }) => {
    if (key === 'b') document.body.style.background = '${GREEN}';
  })`);
  const password = session.vnc_password ?? '';
  const owner = await openScreen({ vnc_url: session.vnc_url ?? '' }, password);
  press(owner, 'a');
  await eventually(async () => (await notesOf(page)).includes('a'), 'the owner steers');

  const asked = Promise.withResolvers<string>();
  const waiting = session.handoff(
    { instructions: 'Press b.', timeout: '5m' },
    { onRequested: ({ id }) => asked.resolve(id) },
  );
  const handoff = `${session.id}/handoffs/${await asked.promise}`;
  await note(page, 'requested');
  const taken = (await post(`${handoff}/take`, undefined, bea)).body;
  expect(taken).toMatchObject({ status: 'taken', taken_by: 'bea' });
  const person = await openScreen(taken, taken.vnc_password);

  const sent = Array.from({ length: 20 }, (_, n) => `command ${n}`);
  const answers = sent.map((text) => note(page, text));
  const second = connect({ browserWSEndpoint: session.cdp_url ?? '', defaultViewport: null });
  press(owner, 'x');
  // The screen answers the owner after its key, so the gateway has seen the key.
  await owner.rfb.framebuffer();
  press(person, 'b');
  await eventually(async () => (await colourOf(person.rfb)) === GREEN, 'the page has the key');
  const gave = { success: true, note: 'Pressed.' };
  expect((await post(`${handoff}/complete`, gave, bea)).body).toMatchObject(gave);

  expect(await waiting).toMatchObject({ status: 'completed', success: true, note: 'Pressed.' });
  await Promise.all(answers);
  expect(await notesOf(page)).toEqual(['begin', 'a', 'requested', 'b', ...sent]);
  expect(await person.closed).toBe(4022);
  expect(await refusal(taken.vnc_url.replace('wss:', 'ws:').replace(tls(), plain()))).toMatchObject(
    { status: 410, body: { error: 'SHARE_ENDED' } },
  );
  press(owner, 'c');
  await eventually(async () => (await notesOf(page)).includes('c'), 'the owner steers again');
  await (await second).disconnect();
  await browser.disconnect();
  owner.socket.close();
});

test('a share shows the screen to a stranger, and one of mode control is steered by the stranger', async () => {
  await using session = await client.sessions.create({ duration: '10m' });
  const { browser, page } = await drive(session.cdp_url ?? '');
  const share = async (mode: string) => {
    const { status, body } = await post(`${session.id}/shares`, { mode, expires_in: '10m' });
    expect(status).toBe(201);
    return body as { id: string; url: string };
  };
  const [view, control] = [await share('view'), await share('control')];
  const open = ({ url }: { url: string }) => {
    const { href, hash } = new URL(url);
    const vncUrl = href.replace(/^http/, 'ws').replace(/#.*$/, 'websockify');
    return openScreen({ vnc_url: vncUrl }, decodeURIComponent(hash.slice('#password='.length)));
  };
  const watching = await open(view);
  press(watching, 'v');
  await watching.rfb.framebuffer();
  const steering = await open(control);
  press(steering, 's');
  await eventually(async () => (await notesOf(page)).includes('s'), 'the stranger steers');
  expect(await notesOf(page)).toEqual(['begin', 's']);

  const used = await eventually(async () => {
    const { body } = await service.request('GET', `/api/sessions/${session.id}/shares`);
    return body.shares.every((one: { used: boolean }) => one.used) && body.shares;
  }, 'both are used');
  expect(used).toMatchObject([
    { id: view.id, mode: 'view' },
    { id: control.id, mode: 'control' },
  ]);
  await service.request('DELETE', `/api/sessions/${session.id}/shares/${view.id}`);
  expect(await watching.closed).toBe(4021);
  const page410 = await fetch(view.url.replace(/#.*$/, ''));
  expect(page410.status).toBe(410);
  steering.socket.close();
  await browser.disconnect();
});

const tls = () => new URL(service.runtime.gateway_wss_url ?? '').host;
const plain = () => new URL(service.runtime.gateway_ws_url ?? '').host;

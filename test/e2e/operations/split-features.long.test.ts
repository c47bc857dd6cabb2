import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BlackBox } from '#events/session/black-box.ts';
import { BOTH, INITIALIZE, postTo } from '#test/support/clients/mcp-messages.ts';
import { startReceiver } from '#test/support/webhooks/receiver.ts';
import { startRoles, type Roles } from '#test/support/deploy/roles.ts';
import { startNginx, type RealNginx } from '#test/support/deploy/real-nginx.ts';
import { extensionZip } from '#test/support/extensions/extension-zip.ts';
import { findNginx } from '#test/support/servers/debian-programs.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import {
  onPage,
  openScreen,
  reaches,
  type CreatedSession,
} from '#test/support/service/real-session.ts';
import { DEV_KEY, eventually, request, type Service } from '#test/support/service/service.ts';

/**
 * Each feature once on the shipped files: a process and a NATS user of deploy/nats.conf for each
 * role, deploy/nginx.conf in front, and real browsers. A feature has its test here; what it does
 * otherwise is tested elsewhere.
 */

const program = await findNginx();
const PAGE = '<title>Shop</title><body style="background:#336699"><input type="file">';

let temporary: string;
let site: Server;
let origin: string;
let nginx: RealNginx;
let roles: Roles;
/** The service as its clients see it. */
let service: Service;
const send = (method: string, path: string, body?: unknown, headers?: object) =>
  service.request(method, path, body, headers);

beforeAll(async () => {
  // Short, and open to the browsers' user: sockets are created in it.
  temporary = await mkdtemp('/tmp/bss-f-');
  await chmod(temporary, 0o711);
  site = createServer((_, response) => response.setHeader('content-type', 'text/html').end(PAGE));
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
  const [api = 0, gateway = 0] = await freePorts(2);
  nginx = await startNginx({ program: program ?? 'nginx', api: [api], gateway: [gateway] });
  roles = await startRoles(
    {
      PORT: `${api}`,
      GATEWAY_PORT: `${gateway}`,
      TRUSTED_PROXIES: '127.0.0.1',
      PUBLIC_GATEWAY_WS_URL: nginx.plainUrl.replace('http', 'ws'),
      PUBLIC_GATEWAY_WSS_URL: nginx.url.replace('http', 'ws'),
      WEBHOOKS_ALLOW_PRIVATE: 'yes',
      FILES_FILE_MAX: '4MB',
    },
    {
      api: { GATEWAY_URL: `http://127.0.0.1:${gateway}`, CREATE_WAIT: '60s' },
      provisioner: { BROWSERS: 'process', TMPDIR: temporary, POOL_MIN_IDLE: '1', POOL_MAX: '8' },
    },
  );
  service = {
    ...roles.services.api,
    apiUrl: nginx.plainUrl,
    request: (method, path, body, headers) => request(nginx.plainUrl + path, method, body, headers),
  };
  const isHealthy = async () => (await send('GET', '/api/health')).body.status === 'healthy';
  await eventually(isHealthy, 'all roles are there');
});
afterAll(async () => {
  await roles?.[Symbol.asyncDispose]();
  await nginx?.[Symbol.asyncDispose]();
  site?.close();
  if (temporary !== undefined) await rm(temporary, { recursive: true, force: true });
});

async function create(fields: object = {}): Promise<CreatedSession> {
  const { status, body } = await send('POST', '/api/sessions', { duration: '30m', ...fields });
  expect([status, body.status]).toEqual([201, 'active']);
  return body as CreatedSession;
}

const stop = async ({ id }: { id: string }) => {
  expect((await send('DELETE', `/api/sessions/${id}`)).status).toBe(200);
  await reaches(service, id, 'stopped');
};

type Told = { type: string; data: Record<string, unknown> };

async function historyOf(id: string): Promise<Told[]> {
  return (await send('GET', `/api/sessions/${id}/history?limit=500`)).body.events;
}

/** The event once it is in the session's history. */
function told(id: string, type: string): Promise<Told> {
  const find = async () => (await historyOf(id)).find((event) => event.type === type) ?? null;
  return eventually(find, `${type} of ${id}`);
}

/** Gives the page's input a file of the browser's machine: its name and size in the page. */
async function choose(page: Page, path: string): Promise<unknown> {
  const cdp = await page.createCDPSession();
  const { root } = await cdp.send('DOM.getDocument');
  const query = { nodeId: root.nodeId, selector: 'input' };
  const { nodeId } = await cdp.send('DOM.querySelector', query);
  await cdp.send('DOM.setFileInputFiles', { nodeId, files: [path] });
  return page.evaluate(
    "(({ name, size }) => [name, size])(document.querySelector('input').files[0])",
  );
}

/** A body that is no JSON, and its answer. */
function exchange(
  method: string,
  path: string,
  body: string | Buffer<ArrayBuffer> | ReadableStream | null = null,
  headers = {},
) {
  return fetch(nginx.plainUrl + path, {
    method,
    body,
    headers: { authorization: `Bearer ${DEV_KEY}`, ...headers },
    ...(body instanceof ReadableStream ? { duplex: 'half' as const } : {}),
  });
}

describe.runIf(program !== null)('by the shipped files', () => {
  /** It goes on while the other tests run: its first report comes after a minute. */
  let recorded: CreatedSession;

  test('a session is driven and seen', async () => {
    recorded = await create({ record: true });
    const title = await onPage(recorded, async (page) => {
      await page.goto(origin);
      return page.title();
    });
    expect(title).toBe('Shop');
    const screen = await openScreen(recorded, recorded.vnc_password);
    expect(screen.rfb.width).toBe(1280);
    screen.socket.close();
  });

  test('a screenshot is made', async () => {
    const picture = await exchange('GET', `/api/sessions/${recorded.id}/screenshot`);
    expect([picture.status, picture.headers.get('content-type')]).toEqual([200, 'image/jpeg']);
    expect((await picture.arrayBuffer()).byteLength).toBeGreaterThan(1_000);
  });

  test('its events are streamed as they come', async () => {
    const stream = await exchange('GET', `/api/sessions/${recorded.id}/events`);
    let read = '';
    for await (const piece of stream.body ?? []) {
      read += Buffer.from(piece).toString();
      if (read.includes('session.activated')) break;
    }
    expect(stream.status).toBe(200);
    expect(read).toContain('session.requested');
  });

  test('a file is uploaded, opened by the page, and read again', async () => {
    const bytes = Buffer.alloc(3_000_000, 'a file ');
    const path = `/api/sessions/${recorded.id}/files/a.txt`;
    const put = await exchange('PUT', path, bytes);
    expect(put.status).toBe(201);
    const { path: place } = (await put.json()) as { path: string };
    expect(await onPage(recorded, (page) => choose(page, place))).toEqual(['a.txt', 3_000_000]);
    const got = await exchange('GET', path);
    expect(Buffer.from(await got.arrayBuffer()).equals(bytes)).toBe(true);
    const large = await exchange('PUT', path, new Blob([Buffer.alloc(6_000_000)]).stream());
    expect([large.status, await large.json()]).toMatchObject([413, { error: 'FILE_TOO_LARGE' }]);
    expect((await send('DELETE', path)).status).toBe(204);
  });

  test('traffic of a session with rules is accounted', async () => {
    const session = await create({ egress: { deny: ['denied.example'] } });
    await onPage(session, (page) => page.goto('http://denied.example/').catch(() => undefined));
    const { data } = await told(session.id, 'session.egress-recorded');
    expect(JSON.stringify(data)).toContain('denied.example');
    await stop(session);
  });

  test('a profile is saved while its session goes on, and is there in the next', async () => {
    const { id } = (await send('POST', '/api/profiles', { name: 'shop' })).body;
    const first = await create({ profile: { id, save: true } });
    await onPage(first, async (page) => {
      await page.goto(origin);
      await page.evaluate("document.cookie = 'login=yes; max-age=3600'");
    });
    const saved = await send('POST', `/api/sessions/${first.id}/profile/save`);
    expect([saved.status, saved.body]).toMatchObject([200, { profile_id: id, version: 1 }]);
    await stop(first);
    const second = await create({ profile: { id } });
    const cookie = await onPage(second, async (page) => {
      await page.goto(origin);
      return page.evaluate('document.cookie');
    });
    expect(cookie).toBe('login=yes');
    await stop(second);
  });

  test('an extension is uploaded, and works in a session', async () => {
    const zip = Buffer.from(await extensionZip());
    const type = { 'content-type': 'application/zip' };
    const uploaded = await exchange('POST', '/api/extensions', zip, type);
    const { id } = (await uploaded.json()) as { id: string };
    expect(uploaded.status).toBe(201);
    const session = await create({ extensions: [id] });
    await onPage(session, async (page) => {
      await page.goto(origin);
      await page.waitForSelector('[data-marked="yes"]');
    });
    await stop(session);
    expect((await send('DELETE', `/api/extensions/${id}`)).status).toBe(204);
  });

  test('a webhook is delivered', async () => {
    let secret = '';
    await using receiver = await startReceiver(() => secret);
    const fields = { url: receiver.url, types: ['session.stopped'] };
    const { status, body } = await send('POST', '/api/webhooks', fields);
    expect(status).toBe(201);
    secret = body.secret;
    const session = await create();
    await stop(session);
    const isThere = () => receiver.received.some(({ data }) => data.subject.includes(session.id));
    await eventually(isThere, 'it is delivered');
    const deliveries = async () =>
      (await send('GET', `/api/webhooks/${body.id}/deliveries`)).body.deliveries.length > 0;
    await eventually(deliveries, 'its attempt is kept');
    expect((await send('DELETE', `/api/webhooks/${body.id}`)).status).toBe(204);
  });

  test('a person takes a hand-off and completes it', async () => {
    const path = `/api/sessions/${recorded.id}/handoffs`;
    const asked = await send('POST', path, { instructions: 'Sign in.', timeout: '5m' });
    expect(asked.status).toBe(201);
    const own = `${path}/${asked.body.id}`;
    expect((await send('POST', `${own}/take`)).status).toBe(200);
    expect((await send('POST', `${own}/complete`, { success: true })).status).toBe(200);
    expect((await send('GET', own)).body.status).toBe('completed');
  });

  test('an agent has a session by MCP, which ends with its own', async () => {
    const post = postTo(new URL('/mcp', nginx.plainUrl));
    const credential = { authorization: `Bearer ${DEV_KEY}` };
    const begun = await post(INITIALIZE, credential);
    await begun.text();
    const mine = { ...credential, 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
    const call = { id: 2, method: 'tools/call', params: { name: 'create_session', arguments: {} } };
    const answer = await (await post(call, mine)).text();
    const [, id = ''] = /"(ses_[\w-]+)"/.exec(answer) ?? [];
    expect((await send('GET', `/api/sessions/${id}`)).body.status).toBe('active');
    const ended = await exchange('DELETE', '/mcp', null, { ...mine, accept: BOTH });
    expect(ended.ok).toBe(true);
    await reaches(service, id, 'stopped');
  });

  test('a WebDriver client drives a session', async () => {
    const capabilities = { alwaysMatch: { browserName: 'chrome' } };
    const begun = await send('POST', '/wd/hub/session', { capabilities });
    expect(begun.status).toBe(200);
    const path = `/wd/hub/session/${begun.body.value.sessionId}`;
    expect((await send('POST', `${path}/url`, { url: origin })).status).toBe(200);
    expect((await send('GET', `${path}/title`)).body).toEqual({ value: 'Shop' });
    expect((await send('DELETE', path)).status).toBe(200);
    await reaches(service, begun.body.value.capabilities['bss:session'].id, 'stopped');
  });

  test('one call answers a picture, and one the content of a page', async () => {
    const json = { 'content-type': 'application/json' };
    const asked = JSON.stringify({ url: origin });
    const picture = await exchange('POST', '/api/screenshot', asked, json);
    expect([picture.status, picture.headers.get('content-type')]).toEqual([200, 'image/png']);
    const page = await send('POST', '/api/content', { url: origin });
    expect(page.status).toBe(200);
    expect(JSON.stringify(page.body)).toContain('<title>Shop</title>');
    await reaches(service, page.headers.get('x-session-id') ?? '', 'stopped');
  });

  test('the end of a session has its black box', async () => {
    const session = await create();
    await onPage(session, async (page) => {
      const failed = once(page as never, 'console');
      await page.goto(origin);
      await page.evaluate("console.error('the cart is empty')");
      await failed;
    });
    await stop(session);
    const { data } = await told(session.id, 'session.stopped');
    expect((data as { blackBox?: BlackBox }).blackBox).toMatchObject({
      address: origin,
      consoleErrors: [{ text: 'the cart is empty' }],
    });
  });

  test('a recording is stored, reported after a minute, and verified; the last picture is kept', async () => {
    const stored = await told(recorded.id, 'session.recording-stored');
    expect(stored.data).toMatchObject({ segments: expect.any(Array) });
    const index = async () => (await send('GET', `/api/sessions/${recorded.id}/recording`)).body;
    const [first] = (await index()).segments;
    expect(first).toMatchObject({ number: 1, recorded: true });
    expect((await send('GET', `/api/sessions/${recorded.id}`)).body.status).toBe('active');
    const segment = await exchange('GET', `/api/sessions/${recorded.id}/recording/${first.name}`);
    expect((await segment.arrayBuffer()).byteLength).toBe(first.bytes);
    await stop(recorded);
    await eventually(async () => (await index()).chain !== null, 'it is complete');
    expect(await roles.bss('recording', 'verify', recorded.id)).not.toBe('');
    // Its screen is looked at each minute.
    const picture = () => exchange('GET', `/api/sessions/${recorded.id}/thumbnail`);
    await eventually(async () => (await picture()).status === 200, 'its last picture is kept');
  });

  test('no process has exceeded its permissions, or logged an error', () => {
    expect(roles.objections()).toEqual([]);
    const errors = Object.values(roles.services).flatMap((one) =>
      one
        .output()
        .split('\n')
        .filter((line) => /"level":(?:50|60|"error"|"fatal")/.test(line)),
    );
    expect(errors).toEqual([]);
  });
});

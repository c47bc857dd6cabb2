import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasDocker, testNetwork } from '#test/support/servers/docker-engine.ts';
import { extensionZip } from '#test/support/extensions/extension-zip.ts';
import {
  DEV_KEY,
  eventually,
  startService,
  type RunningService,
} from '#test/support/service/service.ts';
import {
  onPage,
  openScreen,
  poolOf,
  type CreatedSession,
} from '#test/support/service/real-session.ts';

/** The browser options of a session, as its client observes them. */

const viewport = { width: 1000, height: 700 };

describe.runIf(hasDocker())('a session with Docker browsers', () => {
  let service: RunningService;
  beforeAll(async () => {
    service = await startService({
      BROWSERS: 'docker',
      DOCKER_NETWORK: testNetwork(),
      ...{ POOL_MIN_IDLE: '1', POOL_MAX: '8' },
      TIERS: JSON.stringify({ max: { requests_per_minute: 1_000_000 } }),
    });
  });
  afterAll(() => service?.[Symbol.asyncDispose]());

  async function create(body: object) {
    const isWaiting = async () => ((await poolOf(service))['idle'] ?? 0) > 0;
    await eventually(isWaiting, 'a browser waits');
    const { status, body: session, headers } = await service.request('POST', '/api/sessions', body);
    expect([status, session.status]).toEqual([201, 'active']);
    const how = /;desc=(\w+)/.exec(headers.get('server-timing') ?? '')?.[1];
    return { session: session as CreatedSession, how };
  }
  async function end({ id }: CreatedSession): Promise<void> {
    expect((await service.request('DELETE', `/api/sessions/${id}`)).status).toBe(200);
  }

  test('has the same window size on a pooled browser as on one launched for it', async () => {
    // A time zone that no idle browser can take on.
    const launched = await create({ viewport, timezone: 'Europe/Rome' });
    expect(launched.how).toBe('cold');
    const warm = await eventually(
      async () => {
        const { session, how } = await create({ viewport });
        if (how === 'warm') return session;
        await end(session);
        return null;
      },
      'a browser that waits takes the viewport on',
      120_000,
    );

    const sizes = await sizesOf(warm);
    expect(sizes.slice(0, 2)).toEqual([1000, 700]);
    await expect.poll(() => sizesOf(launched.session)).toEqual(sizes);
    const { rfb, socket } = await openScreen(warm, warm.vnc_password);
    expect([rfb.width, rfb.height]).toEqual([1000, 700]);
    socket.close();
    await end(warm);
    await end(launched.session);
  });

  test('is headless if requested', async () => {
    const { session, how } = await create({ headless: true, viewport });
    expect(how).toBe('cold');
    expect(session).toMatchObject({ vnc_url: null, vnc_password: null, viewer_url: null });
    const agent = await onPage(session, (page) => page.evaluate('navigator.userAgent'));
    expect(agent).toContain('HeadlessChrome');
    expect((await sizesOf(session)).slice(0, 4)).toEqual([1000, 700, 1000, 700]);
    await end(session);
  });

  test('has an extension that was uploaded before', async () => {
    const body = await extensionZip();
    const headers = { authorization: `Bearer ${DEV_KEY}`, 'content-type': 'application/zip' };
    const init = { method: 'POST', headers, body: new Uint8Array(body) };
    const uploaded = await fetch(`${service.apiUrl}/api/extensions`, init);
    expect(uploaded.status).toBe(201);
    const { id } = (await uploaded.json()) as { id: string };
    const { session, how } = await create({ extensions: [id] });
    expect(how).toBe('cold');
    const marked = await onPage(session, async (page) => {
      // A page of the browser's own: the extension runs on each.
      await page.goto('http://127.0.0.1:9222/json/version');
      return page.evaluate('document.documentElement.dataset.marked');
    });
    expect(marked).toBe('yes');
    await end(session);
    expect((await service.request('DELETE', `/api/extensions/${id}`)).status).toBe(204);
    const refused = await service.request('POST', '/api/sessions', { extensions: [id] });
    expect([refused.status, refused.body.error]).toEqual([400, 'UNKNOWN_EXTENSION']);
  });
});

/** The sizes of the screen, the window and the page. */
async function sizesOf(session: CreatedSession): Promise<number[]> {
  const script = '[screen.width,screen.height,outerWidth,outerHeight,innerWidth,innerHeight]';
  return (await onPage(session, (page) => page.evaluate(script))) as number[];
}

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';
import { openCdp, openScreen } from '#test/support/service/real-session.ts';
import { MASTER_KEY, startSecondApi } from '#test/support/service/two-processes.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { connectApi, errorOf, type ApiClient } from '#test/support/clients/api-client.ts';
import { refusal } from '#test/support/gateway.fixture.ts';

/**
 * Access that is taken back: sockets are open at the first process, and the second one, which has
 * no gateway, rotates and revokes.
 */

const PROMISED_MS = 2_000;
const POOL_MAX = 4;

let first: RunningService;
let second: RunningService;
let log: ServiceLog;
let anybody: ApiClient;
let owner: ApiClient;
let viewer: ApiClient;
const times: number[] = [];

beforeAll(async () => {
  const tiers = { pro: { requests_per_minute: 1_000_000, concurrent_sessions: 20 } };
  const env = { TIERS: JSON.stringify(tiers), POOL_MIN_IDLE: '2', POOL_MAX: `${POOL_MAX}` };
  first = await startService({ MASTER_KEY, ...env });
  const { gateway_ws_url: ws, gateway_wss_url: wss } = first.runtime;
  const gateway = { PUBLIC_GATEWAY_WS_URL: ws ?? '', PUBLIC_GATEWAY_WSS_URL: wss ?? '' };
  second = await startSecondApi(first, { ...env, ...gateway });
  anybody = await connectApi(second.apiUrl);
  log = await openLog(first);
  await log.register('acme', 'pro', 5_000);
  owner = anybody.as(await log.issueKey('acme', 'owner', anybody));
  viewer = anybody.as(await log.issueKey('acme', 'viewer', anybody));
});
afterAll(async () => {
  console.log(`closed after ${times.map((ms) => ms.toFixed(1)).join(', ')} ms of ${PROMISED_MS}`);
  await log?.[Symbol.asyncDispose]();
  await second?.[Symbol.asyncDispose]();
  await first?.[Symbol.asyncDispose]();
});

/** A member with a key of its own. */
async function member(): Promise<{ client: ApiClient; keyId: string }> {
  const { status, body } = await owner.send('POST', '/api/keys', { body: { role: 'member' } });
  expect(status).toBe(201);
  return { client: anybody.as(body.api_key), keyId: body.key_id };
}
const access = async (client: ApiClient, id: string) =>
  (await client.get(`/api/sessions/${id}/access`)).body;
const rotate = (client: ApiClient, id: string) =>
  client.send('POST', `/api/sessions/${id}/rotate-access`);

type Listed = { id: string; status: string };
type Access = { cdp_url: string; vnc_url: string; vnc_password: string };

async function openBoth(addresses: Access) {
  const driver = await openCdp(addresses.cdp_url);
  const screen = await openScreen(addresses, addresses.vnc_password);
  return { driver, screen };
}

/** Notes how long after now both are closed; resolves with the viewer's close code. */
function closing({ driver, screen }: Awaited<ReturnType<typeof openBoth>>): Promise<number> {
  const begin = performance.now();
  return Promise.all([screen.closed, driver.closed]).then(([code]) => {
    times.push(performance.now() - begin);
    return code;
  });
}

async function goesOn({ socket }: Awaited<ReturnType<typeof openCdp>>): Promise<void> {
  const answered = new Promise((resolve) => socket.once('message', resolve));
  socket.send(JSON.stringify({ id: 2, method: 'Browser.getVersion' }));
  await answered;
}

describe('POST /api/sessions/{id}/rotate-access', () => {
  it('closes all connections of the session, and answers addresses that work at once', async () => {
    const { body: session } = await owner.create();
    const { client } = await member();
    const [mine, theirs] = [
      await openBoth(session),
      await openBoth(await access(client, session.id)),
    ];
    const closed = Promise.all([mine, theirs].map(closing));
    const { status, body } = await rotate(owner, session.id);
    expect(status).toBe(200);
    expect(body).toEqual({
      session_id: session.id,
      status: 'active',
      vnc_url: expect.not.stringContaining(session.vnc_url),
      cdp_url: expect.not.stringContaining(session.cdp_url),
      bidi_url: body.cdp_url.replace('/browser/', '/bidi/'),
      vnc_password: session.vnc_password,
      viewer_url: expect.any(String),
      access_urls: { vnc_url: body.vnc_url, cdp_url: body.cdp_url },
      expires_at: session.expires_at,
    });
    const fresh = await openBoth(body);
    expect(await closed).toEqual([4019, 4019]);
    expect(Math.max(...times)).toBeLessThan(PROMISED_MS);
    expect((await refusal(session.cdp_url)).status).toBe(404);
    await goesOn(fresh.driver);
    // Every answer has the new addresses.
    expect(await access(owner, session.id)).toMatchObject({ cdp_url: body.cdp_url });
    const read = await owner.get(`/api/sessions/${session.id}`);
    expect(read.body).toMatchObject({ cdp_url: body.cdp_url, viewer_url: body.viewer_url });
    await owner.stop(session.id);
  });

  it('rotates a session that waits for its browser, and not one that has ended', async () => {
    await log.register('patient', 'pro', 5_000);
    const patient = anybody.as(await log.issueKey('patient', 'member', anybody));
    for (let count = 0; count <= POOL_MAX; count += 1)
      expect((await patient.create({}, { prefer: 'respond-async' })).status).toBe(201);
    const having = async (path: string) =>
      ((await patient.get(path)).body.sessions ?? []) as Listed[];
    await eventually(
      async () => (await having('/api/sessions?status=active')).length === POOL_MAX,
      'every browser has a session',
    );
    const all = await having('/api/sessions');
    const waiting = all.find(({ status }) => status !== 'active')?.id ?? '';
    const before = await eventually(async () => {
      const { body } = await patient.get(`/api/sessions/${waiting}`);
      return body.status === 'queued' && body;
    }, 'the last one is in the queue');

    const { status, body } = await rotate(patient, waiting);
    expect(status).toBe(200);
    expect(body).toMatchObject({ status: before.status, vnc_password: null, viewer_url: null });
    expect(body.cdp_url).not.toBe(before.cdp_url);
    expect((await refusal(before.cdp_url)).status).toBe(404);
    expect((await refusal(body.cdp_url)).status).toBe(409);
    for (const { id } of all) await patient.stop(id);
    expect(errorOf(await rotate(patient, waiting))).toBe('410 SESSION_ENDED');
  });

  it('needs a role that may control sessions of the organization', async () => {
    const { body: session } = await owner.create();
    expect(errorOf(await rotate(viewer, session.id))).toBe('403 FORBIDDEN');
    const stranger = await rotate(anybody, session.id);
    expect(errorOf(stranger)).toBe('404 SESSION_NOT_FOUND');
    expect(errorOf(await rotate(owner, 'a.b'))).toBe('404 SESSION_NOT_FOUND');
    expect(await access(owner, session.id)).toMatchObject({ cdp_url: session.cdp_url });
    await owner.stop(session.id);
  });
});

describe('the revocation of a key', () => {
  it('closes the connections with its addresses, and none of other keys', async () => {
    const [leaver, stayer] = [await member(), await member()];
    const { body: session } = await leaver.client.create();
    const { body: others } = await stayer.client.create();
    const read = await access(leaver.client, others.id);
    const kept = await access(stayer.client, session.id);
    expect(new Set([session.cdp_url, kept.cdp_url, others.cdp_url, read.cdp_url]).size).toBe(4);
    // A read is rendered for each key.
    for (const [client, url] of [
      [leaver.client, session.cdp_url],
      [stayer.client, kept.cdp_url],
    ] as const)
      expect((await client.get(`/api/sessions/${session.id}`)).body.cdp_url).toBe(url);
    const [own, foreign] = [await openBoth(session), await openBoth(read)];
    const [stays, shares] = [await openBoth(others), await openBoth(kept)];
    const given = await leaver.client.send('POST', `/api/sessions/${session.id}/shares`, {
      body: { mode: 'view', expires_in: '1h' },
    });
    const { href, hash } = new URL(given.body.url);
    const screenOf = { vnc_url: href.replace(/^http/, 'ws').replace(/#.*$/, 'websockify') };
    const watching = await openScreen(
      screenOf,
      new URLSearchParams(hash.slice(1)).get('password') ?? '',
    );

    const closed = Promise.all([own, foreign].map(closing));
    const revoked = await owner.send('DELETE', `/api/keys/${leaver.keyId}`);
    expect(revoked.body).toEqual({
      message: `Key ${leaver.keyId} has been revoked; its connections are being closed.`,
      key_id: leaver.keyId,
    });
    expect(await closed).toEqual([4020, 4020]);
    expect(await watching.closed).toBe(4020);
    expect(Math.max(...times)).toBeLessThan(PROMISED_MS);
    for (const url of [session.cdp_url, read.cdp_url])
      expect((await refusal(url)).body).toMatchObject({ error: 'NOT_FOUND', context: {} });
    await goesOn(stays.driver);
    await goesOn(shares.driver);
    expect((await stayer.client.get(`/api/sessions/${session.id}`)).body.status).toBe('active');
    for (const { id } of [session, others]) await owner.stop(id);
  });
});

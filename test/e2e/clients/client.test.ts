import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient, type Client } from '#src/apps/client/client.ts';
import {
  shareService,
  type SharedService,
  type Tenant,
} from '#test/support/shared/shared-service.ts';

/** The client against the whole service. */
let shared: SharedService;
let tenant: Tenant;
let client: Client;
beforeAll(async () => {
  shared = await shareService();
  tenant = await shared.organization();
  client = createClient({ url: shared.service.apiUrl, apiKey: tenant.key });
});
afterAll(() => shared?.[Symbol.asyncDispose]());

describe('the client', () => {
  it('creates, reads, lists, extends, opens and stops', async () => {
    const { sessions } = client;
    await using session = await sessions.create({ duration: '10m', labels: { test: 'client' } });
    expect(session).toMatchObject({ status: 'active', organization_id: tenant.id });
    expect(await sessions.get(session.id)).toMatchObject({ id: session.id, status: 'active' });
    const page = await sessions.list({ labels: { test: 'client' }, status: 'active', limit: 5 });
    expect(page).toMatchObject({ sessions: [{ id: session.id }], total: 1 });
    const { expires_at } = await session.extend('20m');
    expect(Date.parse(expires_at) - Date.parse(session.expires_at)).toBe(20 * 60_000);
    const { cdp_url, vnc_password } = await session.access();
    expect([cdp_url, vnc_password?.length]).toEqual([session.cdp_url, 8]);
    const rotated = await session.rotateAccess();
    expect(rotated).toMatchObject({ session_id: session.id, status: 'active' });
    expect(rotated.cdp_url).not.toBe(cdp_url);
    expect((await session.access()).cdp_url).toBe(rotated.cdp_url);
    const picture = await session.screenshot({ maxWidth: 64 });
    const { bytes = Uint8Array.of(), etag = '' } = picture ?? {};
    expect([...bytes.subarray(0, 2)]).toEqual([0xff, 0xd8]);
    expect(await session.screenshot({ maxWidth: 64, etag })).toBeNull();
    expect(await session.stop()).toMatchObject({ session_id: session.id });
    await expect(session.screenshot()).rejects.toMatchObject({ error: 'SESSION_ENDED' });
    await expect(session.access()).rejects.toMatchObject({ error: 'SESSION_ENDED', code: 410 });
    await expect(sessions.get('ses_none')).rejects.toMatchObject({
      error: 'SESSION_NOT_FOUND',
      context: { session_id: 'ses_none' },
    });
    await expect(sessions.create({ duration: '90s' })).rejects.toMatchObject({
      error: 'INVALID_DURATION',
      context: { duration: '90s' },
    });
  });

  it('creates one session and charges once, also if answers are lost', async () => {
    let lost = 0;
    const frail = createClient({
      url: shared.service.apiUrl,
      apiKey: tenant.key,
      async fetch(input, init) {
        const response = await fetch(input, init);
        if (init?.method !== 'POST' || (lost += 1) % 3 === 0) return response;
        throw new TypeError('the connection was lost with the answer');
      },
    });
    const labels = { test: 'lost' };
    await using session = await frail.sessions.create({ duration: '10m', labels });
    expect(lost).toBe(3);
    expect((await client.sessions.list({ labels })).total).toBe(1);
    await session.extend('10m');
    expect(lost).toBe(6);
    expect((await client.sessions.get(session.id)).credits_reserved).toBe(20);
  });
});

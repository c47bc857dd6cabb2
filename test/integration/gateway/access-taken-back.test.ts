import { describe, expect, it } from 'vitest';
import { holderOf } from '#src/roles/gateway/access/ticket.ts';
import { openSocket, refusal, startSession } from '#test/support/gateway.fixture.ts';

/** Tickets that were valid, and are no longer: of an older epoch, or of a revoked key. */

const ADA = 'ad'.repeat(32);
const BOB = 'b0'.repeat(32);

type Site = Awaited<ReturnType<typeof startSession>>;

function rotate(site: Site, accessEpoch: number): void {
  const session = site.directory.get('s1');
  if (session?.status !== 'active') throw new Error('s1 has no browser');
  site.directory.set('s1', { ...session, accessEpoch });
}

/** One connection of each kind, with addresses of this epoch and key. */
async function openBoth(site: Site, to: Parameters<Site['cdpUrl']>[1] = {}) {
  return {
    driver: await openSocket(site.cdpUrl('s1', to)),
    viewer: await openSocket(site.vncUrl('s1', to)),
  };
}

describe('after a rotation', () => {
  it('connections with older addresses are closed, and those with the new ones go on', async () => {
    await using site = await startSession();
    const old = await openBoth(site);
    rotate(site, 1);
    const fresh = await openBoth(site, { epoch: 1 });

    expect(site.gateway.closeRotated('org', 's1', 1)).toBe(2);
    await old.driver.closed;
    expect(await old.viewer.closed).toEqual({ code: 4019, reason: 'access_rotated' });
    await fresh.driver.echoes('still here');
    expect(site.gateway.closeRotated('org', 's1', 1)).toBe(0);
    expect(site.gateway.counters().open).toEqual({ cdp: 1, vnc: 1 });
  });

  it('an older address is refused like one that never was', async () => {
    await using site = await startSession();
    rotate(site, 2);
    const never = await refusal(site.cdpUrl('s9'));
    for (const url of [
      site.cdpUrl('s1'),
      site.vncUrl('s1'),
      site.cdpUrl('s1', { epoch: 1 }),
      site.vncUrl('s1', { epoch: 1, keyHash: ADA }),
    ]) {
      expect(await refusal(url)).toEqual(never);
      const plain = await fetch(url.replace('ws:', 'http:'));
      expect([plain.status, await plain.json()]).toEqual([404, never.body]);
    }
    const page = await fetch(site.vncUrl('s1').replace('ws:', 'http:').replace('websockify', ''));
    expect(page.status).toBe(404);
    const version = `${site.cdpUrl('s1').replace('ws:', 'http:')}/json/version`;
    expect((await fetch(version)).status).toBe(404);
  });

  it('an older address does not tell that the session has ended', async () => {
    await using site = await startSession();
    site.directory.set('s1', { status: 'ended', accessEpoch: 1, reason: 'user' });
    expect((await refusal(site.cdpUrl('s1'))).status).toBe(404);
    expect((await refusal(site.cdpUrl('s1', { epoch: 1 }))).status).toBe(410);
  });

  it('a new address is admitted before this gateway has heard of the rotation', async () => {
    await using site = await startSession();
    await using driver = await opened(site.cdpUrl('s1', { epoch: 1 }));
    await driver.echoes('hello');
  });

  it('a connection that is still being admitted is refused', async () => {
    const asked = Promise.withResolvers<undefined>();
    const answer = Promise.withResolvers<undefined>();
    await using site = await startSession({
      sessions: {
        async find() {
          asked.resolve(undefined);
          await answer.promise;
          return site.directory.get('s1') ?? null;
        },
      },
    });
    const refused = refusal(site.cdpUrl('s1'));
    await asked.promise;
    site.gateway.closeRotated('org', 's1', 1);
    answer.resolve(undefined);
    expect((await refused).status).toBe(404);
    await site.isClean();
  });
});

describe('after the revocation of a key', () => {
  it('its connections are closed, and no others', async () => {
    await using site = await startSession();
    const ada = await openBoth(site, { keyHash: ADA });
    const bob = await openBoth(site, { keyHash: BOB });
    const anybody = await openBoth(site);

    site.revoked.add(holderOf(ADA));
    expect(site.gateway.closeRevoked('other', new Set())).toBe(0);
    expect(site.gateway.closeRevoked('org', new Set([holderOf(BOB)]))).toBe(2);
    await ada.driver.closed;
    expect(await ada.viewer.closed).toEqual({ code: 4020, reason: 'key_revoked' });
    await bob.driver.echoes('bob');
    await anybody.driver.echoes('a token');
    expect(site.gateway.counters().open).toEqual({ cdp: 2, vnc: 2 });
  });

  it('its addresses are refused like those that never were', async () => {
    await using site = await startSession();
    site.revoked.add(holderOf(ADA));
    const never = await refusal(site.cdpUrl('s9'));
    for (const url of [site.cdpUrl('s1', { keyHash: ADA }), site.vncUrl('s1', { keyHash: ADA })])
      expect(await refusal(url)).toEqual(never);
    await using driver = await opened(site.cdpUrl('s1', { keyHash: BOB }));
    await driver.echoes('hello');
  });

  it('while it cannot be decided whether a key is live, its addresses are answered 503', async () => {
    const keys = { isLive: () => Promise.reject(new Error('the event store is away')) };
    await using site = await startSession({ keys });
    expect((await refusal(site.cdpUrl('s1', { keyHash: ADA }))).status).toBe(503);
    await using driver = await opened(site.cdpUrl('s1'));
    await driver.echoes('no key, no question');
  });
});

async function opened(url: string) {
  const client = await openSocket(url);
  return Object.assign(client, {
    async [Symbol.asyncDispose]() {
      client.socket.terminate();
      await client.closed;
    },
  });
}

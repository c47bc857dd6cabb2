import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PAGES } from '#src/roles/api/dashboard/pages.ts';
import { startPathProxy, type PathProxy } from '#test/support/deploy/path-proxy.ts';
import {
  shareService,
  type SharedService,
  type Tenant,
} from '#test/support/shared/shared-service.ts';

/** The service below a path of a proxy that tells it nothing of the path. */

let shared: SharedService;
let tenant: Tenant;
let proxy: PathProxy;
beforeAll(async () => {
  shared = await shareService();
  tenant = await shared.organization();
  proxy = await startPathProxy(shared.service.apiUrl, '/browsers');
});
afterAll(async () => {
  await proxy?.[Symbol.asyncDispose]();
  await shared?.[Symbol.asyncDispose]();
});

/** Where an address of an answer leads, as its client resolves it. */
async function follow(address: string, from: string) {
  const to = new URL(address, from);
  const answer = await fetch(to, { headers: { authorization: `Bearer ${tenant.key}` } });
  return { path: to.pathname, status: answer.status, answer };
}

describe('below a path', () => {
  it.each([...Object.values(PAGES).map(({ path }) => path), '/docs', '/docs/events'])(
    '%s names its scripts and styles where they are',
    async (path) => {
      const page = proxy.url + path.replace(':id', 'ses_1');
      const html = await (await fetch(page)).text();
      const named = [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, address]) => address);
      expect(named).not.toEqual([]);
      for (const address of named)
        expect(await follow(address ?? '', page)).toMatchObject({ status: 200 });
    },
  );

  it.each(['/docs', '/docs/events'])('%s reads its document where it is', async (path) => {
    const html = await (await fetch(proxy.url + path)).text();
    const [, address = ''] = /new URL\('([^']+)', location/.exec(html) ?? [];
    const { status, answer } = await follow(address, proxy.url + path);
    expect(status).toBe(200);
    expect(await answer.json()).toHaveProperty('info.title');
  });

  it('the OpenAPI document says that its paths are below it', async () => {
    const document = `${proxy.url}/api/openapi.json`;
    const { servers } = (await (await fetch(document)).json()) as { servers: { url: string }[] };
    const base = new URL(servers[0]?.url ?? '', document).href.replace(/\/$/, '');
    expect(base).toBe(proxy.url);
  });

  it('the Location of a create is the session', async () => {
    const url = `${proxy.url}/api/sessions`;
    const headers = { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' };
    const created = await fetch(url, { method: 'POST', headers, body: '{}' });
    const { id } = (await created.json()) as { id: string };
    const { answer } = await follow(created.headers.get('location') ?? '', url);
    expect(await answer.json()).toMatchObject({ id });
  });
});

import { createHash } from 'node:crypto';
import Fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import { html } from '#src/api/html.ts';
import { apiRoutes } from '#src/api/routes.ts';
import { errors } from '#src/errors.ts';
import { noParts } from '#test/support/service/api-in-memory.ts';

const routes = apiRoutes(noParts);

async function openPage(headers: Record<string, string>) {
  const server = Fastify({ trustProxy: '127.0.0.1' });
  const route = routes.find(({ path }) => path === '/docs');
  server.get('/docs', async (request, reply) => route?.handle(request, reply, null as never));
  const reply = await server.inject({ url: '/docs', headers });
  return { page: reply.body, policy: String(reply.headers['content-security-policy']) };
}

describe('the page', () => {
  it('has every operation, with a call of it, and every error', async () => {
    const { page } = await openPage({ host: 'browsers.example.com:8080' });
    for (const { operationId, path, summary } of routes) {
      expect(page).toContain(`<section id="${operationId}">`);
      expect(page).toContain(`<code>${path.replaceAll(/:(\w+)/g, '{$1}')}</code>`);
      expect(page).toContain(html`<h3>${summary}</h3>`.html);
    }
    const calls = page.match(/&quot;http:\/\/browsers\.example\.com:8080\/\S*&quot;/g);
    expect(calls).toHaveLength(routes.length);
    for (const name of Object.keys(errors)) expect(page).toContain(`<code>${name}</code>`);
  });

  it('shows what an object has that may be null', async () => {
    const { page } = await openPage({ host: 'localhost' });
    const answer = /<section id="getSession">[^]*?<\/section>/.exec(page)?.[0] ?? '';
    const cells = [...answer.matchAll(/<td>([^]*?)<\/td>/g)].map(([, cell]) => cell?.trim());
    for (const [name, type] of [
      ['viewport', 'object or null'],
      ['viewport.width', 'integer'],
      ['viewport.height', 'integer'],
    ])
      expect([name, cells[cells.indexOf(`<code>${name}</code>`) + 1]]).toEqual([name, type]);
  });

  it('loads nothing, and runs only the script and style that it was made with', async () => {
    const { page, policy } = await openPage({ host: 'localhost' });
    expect(page).not.toMatch(/\b(?:src|srcset|action)=|@import|url\(|<link|<iframe/);
    expect(page.match(/href="[^#"]*"/g)).toEqual([
      'href="/api/openapi.json"',
      'href="/docs/events"',
    ]);
    for (const element of ['style', 'script']) {
      const text = new RegExp(`<${element}>([^]*?)</${element}>`).exec(page)?.[1] ?? '';
      const hash = createHash('sha256').update(text).digest('base64');
      expect(policy).toContain(`${element}-src 'sha256-${hash}'`);
    }
    expect(policy).toContain("default-src 'none'");
    expect(page).not.toMatch(/<[^>]+ (?:style|on\w+)=/);
  });

  it('calls https where a proxy ends it, and trusts no name that is none', async () => {
    const secure = { host: 'api.example.com', 'x-forwarded-proto': 'https' };
    expect((await openPage(secure)).page).toContain(
      'curl &quot;https://api.example.com/api/status',
    );
    const { page } = await openPage({ host: '"><script>alert(1)</script>' });
    expect(page).not.toContain('alert(1)');
    expect(page).toContain('http://localhost/api/sessions');
  });
});

describe('html', () => {
  it('escapes what is put in, unless it is HTML already', () => {
    const evil = `<b a="1" c='2'>&`;
    const inner = html`<i>${evil}</i>`;
    const escaped = '&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;';
    expect(html`<p>${[inner, null, undefined, 7]}</p>`.html).toBe(`<p><i>${escaped}</i>7</p>`);
  });
});

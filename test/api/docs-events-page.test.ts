import { createHash } from 'node:crypto';
import Fastify from 'fastify';
import { expect, it } from 'vitest';
import { aggregates } from '#events/events.ts';
import { meanings } from '#events/meanings.ts';
import { publicSchema } from '#events/public-event.ts';
import { html } from '#src/api/html.ts';
import { apiRoutes } from '#src/api/routes.ts';
import { inline } from '#src/api/docs-table.ts';
import { noParts } from '#test/support/service/api-in-memory.ts';

const routes = apiRoutes(noParts);
const types = Object.values(aggregates).flatMap(({ events }) => Object.keys(events));

async function open(path: string) {
  const server = Fastify();
  const route = routes.find((one) => one.path === path);
  server.get(path, async (request, reply) => route?.handle(request, reply, null as never));
  return server.inject({ url: path, headers: { host: 'browsers.example.com' } });
}

it('the page tells of every event: when, by whom, its fields, an example', async () => {
  const page = (await open('/docs/events')).body;
  for (const type of types) {
    const section = new RegExp(`<section id="${type}">[^]*?</section>`).exec(page)?.[0] ?? '';
    expect(section, type).toContain(html`<p>${inline(meanings[type]?.when ?? '')}</p>`.html);
    expect(section).toContain(html`${inline(meanings[type]?.by ?? '')}`.html);
    expect(section).toContain(`&quot;type&quot;: &quot;${type}&quot;`);
    const kind = type.split('.')[0] ?? '';
    const { events } = aggregates[kind as 'session'];
    const told = publicSchema(kind as 'session', { ...events[type] });
    const { properties } = told as { properties?: object };
    for (const field of Object.keys(properties ?? {}))
      expect(section).toContain(`<code>${field}</code>`);
    expect(page).toContain(`<section id="${kind}-state">`);
  }
  expect(page).toContain('curl -N -H');
  expect(page).toContain('http://browsers.example.com/api/events');
});

it('the page loads nothing and runs only its own script', async () => {
  const { body: page, headers } = await open('/docs/events');
  expect(page).not.toMatch(/\b(?:src|srcset|action)=|@import|url\(|<link|<iframe/);
  for (const element of ['style', 'script']) {
    const text = new RegExp(`<${element}>([^]*?)</${element}>`).exec(page)?.[1] ?? '';
    const hash = createHash('sha256').update(text).digest('base64');
    expect(headers['content-security-policy']).toContain(`${element}-src 'sha256-${hash}'`);
  }
});

it('the document that programs get is the file of the contract', async () => {
  const document = (await open('/api/asyncapi.json')).json<{ asyncapi: string }>();
  expect(document.asyncapi).toBe('3.0.0');
});

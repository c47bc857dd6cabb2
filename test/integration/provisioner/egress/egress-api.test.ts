import { describe, expect, it, test } from 'vitest';
import type { CreateSession } from '#src/apps/client/sessions.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { eventually } from '#test/support/service/service.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

// The library of proxies is loaded by the first session with rules, while no virtual time may pass.
await import('#src/features/egress/egress-proxy.ts');
const { beforeAll, afterAll } = useVirtualTime();

type App = Awaited<ReturnType<typeof startApp>>;
let app: App;
beforeAll(async () => void (app = await startApp()));
afterAll(() => app[Symbol.asyncDispose]());

const PASSWORD = 'correct-horse-battery';
const egress = {
  allow: ['Example.COM', '*.bücher.example:443'],
  deny: ['203.0.113.0/24'],
  proxy: { server: 'http://proxy.example.com', username: 'shop', password: PASSWORD },
} satisfies CreateSession['egress'];

it('is answered in one spelling, without the password, and told how it is enforced', async () => {
  const { status, body } = await app.request('POST', '/api/sessions', { egress });
  expect([status, body.status]).toEqual([201, 'active']);
  const expected = {
    allow: ['example.com', '*.xn--bcher-kva.example:443'],
    deny: ['203.0.113.0/24'],
    proxy: { server: 'http://proxy.example.com:80', username: 'shop' },
    enforced: 'simulated',
    traffic: null,
  };
  expect(body.egress).toEqual(expected);
  const read = await app.request('GET', `/api/sessions/${body.id}`);
  expect(read.body.egress).toEqual(expected);
  const history = await app.request('GET', `/api/sessions/${body.id}/history`);
  expect(history.status).toBe(200);
  const said = JSON.stringify([body, read.body, history.body]);
  expect(said).not.toContain(PASSWORD);
  expect(said).not.toContain('sealed');
});

it('is null for a session without rules', async () => {
  const { body } = await app.request('POST', '/api/sessions');
  expect(body.egress).toBeNull();
});

it('may be empty: then all but private networks is allowed, and recorded', async () => {
  const { body } = await app.request('POST', '/api/sessions', { egress: {} });
  expect(body.egress).toMatchObject({ allow: null, deny: [], proxy: null });
});

describe('a server whose browsers cannot be held to rules', () => {
  const builtAt = Date.parse('2026-11-20T00:00:00.000Z');
  /** New browsers are launched from another image. */
  function renew(changes: { egress: 'simulated' | undefined }): void {
    Object.assign(app.browsers, changes);
    app.browsers.renew({ version: '151.0.7900.12', builtAt });
  }
  const create = (asked: object) => app.request('POST', '/api/sessions', asked);

  it('lets creates with rules be refused, from its image to the next one', async () => {
    renew({ egress: undefined });
    const refused = await eventually(async () => {
      const reply = await create({ egress: {} });
      return reply.status === 503 && reply;
    }, 'the create is refused');
    expect(refused.body).toMatchObject({
      error: 'EGRESS_UNAVAILABLE',
      context: { servers: ['srv_1'] },
    });
    expect((await create({})).status).toBe(201);
    renew({ egress: 'simulated' });
    const isTaken = async () => (await create({ egress: {} })).status === 201;
    await eventually(isTaken, 'the create is taken again');
  });
});

test.each([
  ['a pattern', { allow: ['https://example.com'] }, 'egress.allow.0'],
  ['a later pattern', { deny: ['example.com', '10.0.0.0/40'] }, 'egress.deny.1'],
  ['the proxy', { proxy: { server: 'ftp://example.com' } }, 'egress.proxy.server'],
  [
    'a proxy that is the service',
    { proxy: { server: 'http://BSS.example.org:3128' } },
    'egress.proxy.server',
  ],
  ['a password alone', { proxy: { server: 'http://a.b', password: 'x' } }, 'egress.proxy.username'],
  ['too many patterns', { allow: Array(101).fill('a.example') }, 'egress.allow'],
  ['too long patterns', { allow: Array(50).fill('a'.repeat(60)).map(distinct) }, 'egress'],
  ['an unknown field', { allowed: [] }, 'egress.allowed'],
])('what is wrong is named: %s', async (_, wrong, field) => {
  const { status, body } = await app.request('POST', '/api/sessions', { egress: wrong });
  expect([status, body.error, body.context.field]).toEqual([400, 'INVALID_REQUEST', field]);
});

function distinct(text: string, index: number): string {
  return `${text}.${'b'.repeat(60)}${index}.example`;
}

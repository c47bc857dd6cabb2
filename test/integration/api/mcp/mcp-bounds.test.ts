import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSessionPlaces } from '#src/features/mcp/session-places.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { createMemoryMcpSessions } from '#src/kernel/messaging/mcp-sessions.memory.ts';
import { INITIALIZE, postTo } from '#test/support/clients/mcp-messages.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { eventually } from '#test/support/service/service.ts';

/** How many MCP sessions may be begun. */

const LIMIT = 200;

let app: Awaited<ReturnType<typeof startApp>>;
let url: URL;
beforeAll(async () => {
  app = await startApp();
  await app.registerOther();
  url = new URL('/mcp', await app.listen());
});
afterAll(() => app?.[Symbol.asyncDispose]());

it('an organization has at most 200 MCP sessions in a process, and another place once one ends', async () => {
  const post = postTo(url);
  const begin = async (bearer = 'any') => {
    const answer = await post(INITIALIZE, { authorization: `Bearer ${bearer}` });
    return { answer, id: String(answer.headers.get('mcp-session-id')) };
  };
  const begun: string[] = [];
  while (begun.length < LIMIT) {
    const some = await Promise.all(Array.from({ length: 20 }, () => begin()));
    begun.push(...some.filter(({ answer }) => answer.status === 200).map(({ id }) => id));
  }
  const { answer } = await begin();
  expect(answer.headers.get('retry-after')).toBe('10');
  expect([answer.status, await answer.json()]).toMatchObject([
    429,
    { error: 'MCP_SESSION_LIMIT_EXCEEDED', code: 429, context: { limit: LIMIT } },
  ]);
  expect((await begin('other')).answer.status).toBe(200);
  const [first = '', second = ''] = begun;
  const headers = { authorization: 'Bearer any', 'mcp-session-id': first };
  expect((await fetch(url, { method: 'DELETE', headers })).status).toBe(204);
  expect((await begin()).answer.status).toBe(200);
  expect((await begin()).answer.status).toBe(429);
  // As the timekeeper or another process ends it.
  const ended = { reason: 'organization', note: null } as const;
  await app.mcpSessions.change(second, (session) => ({ ...session, ended }));
  await eventually(async () => (await begin()).answer.status === 200, 'its place is free');
});

it('all organizations together have a bound, beyond which the service is unavailable', async () => {
  const sessions = createMemoryMcpSessions({ now: Date.now });
  const places = createSessionPlaces(sessions, { perOrganization: 2, max: 3, lookEveryMs: 0 });
  const begin = async (organizationId: string, id: string) => {
    const place = await places.take(organizationId);
    if ('code' in place) return place;
    const owner = { organizationId, userId: 'ada', client: 'agent 1.0' };
    await sessions.create(id, { ...owner, stream: 'none', streamId: null, ended: null });
    place.keep(id);
    place[Symbol.dispose]();
    return null;
  };
  expect([await begin('a', 'a1'), await begin('a', 'a2')]).toEqual([null, null]);
  expect(await begin('a', 'a3')).toMatchObject({ code: 'MCP_SESSION_LIMIT_EXCEEDED' });
  expect(await begin('b', 'b1')).toBeNull();
  expect(await begin('c', 'c1')).toMatchObject({
    code: 'UNAVAILABLE',
    context: { part: 'mcp-sessions' },
  });
  await sessions.remove('a1');
  // It is being begun: the store does not have it yet.
  using begun = (await places.take('c')) as Disposable;
  expect(isRejection(begun)).toBe(false);
  expect(await begin('d', 'd1')).toMatchObject({ code: 'UNAVAILABLE' });
});

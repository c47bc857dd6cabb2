import { describe, expect, it, test } from 'vitest';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** GET /api/events as pages of JSON. */

const { beforeAll, afterAll } = useVirtualTime();

let app: Awaited<ReturnType<typeof startApp>>;
const other = { authorization: 'Bearer other' };

beforeAll(async () => {
  app = await startApp();
  await app.registerOther();
  for (const team of ['web', 'api', 'web']) {
    const { body } = await app.request('POST', '/api/sessions', { labels: { team } });
    await app.request('POST', `/api/sessions/${body.id}/extend`, { duration: '5m' });
  }
  await app.request('POST', '/api/sessions', {}, other);
});
afterAll(() => app?.[Symbol.asyncDispose]());

async function page(query: string, headers = {}) {
  const path = `/api/events?format=json${query}`;
  const { status, body } = await app.request('GET', path, undefined, headers);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

/** All events, page by page, until there are no more. */
async function walk(query: string, headers = {}) {
  const events: { sequence: number; type: string; state: { labels?: object } }[] = [];
  for (let after = 0, pages = 0; pages < 200; pages += 1) {
    const { events: some, next, more } = await page(`${query}&after=${after}`, headers);
    expect(next).toBeGreaterThanOrEqual(some.at(-1)?.sequence ?? after);
    events.push(...some);
    if (!more) return events;
    expect(next).toBeGreaterThan(after);
    after = next;
  }
  throw new Error('it has no end');
}

describe('pages', () => {
  it.each([1, 3, 100])('of %i have every event once, in order', async (limit) => {
    const events = await walk(`&limit=${limit}`);
    const sequences = events.map(({ sequence }) => sequence);
    expect(sequences).toEqual([...new Set(sequences)].toSorted((a, b) => a - b));
    expect(events.filter(({ type }) => type === 'session.extended')).toHaveLength(3);
    expect(events[0]?.type).toBe('organization.registered');
    expect(events.every(({ type }) => !/^(server|workload)\.|carried-forward/.test(type))).toBe(
      true,
    );
  });

  it('have public events alone, as the stream has them', async () => {
    const [event] = (await page('&type=session.activated&limit=1')).events;
    expect(event).toMatchObject({ specversion: '1.0', type: 'session.activated' });
    expect(JSON.stringify(await walk(''))).not.toMatch(/serverIp|"cdp":|fingerprint|"hash"/);
  });

  it('honour type and label, and lead on where nothing matches', async () => {
    const extended = await walk('&type=session.extended&limit=1');
    expect(extended.map(({ type }) => type)).toEqual(Array(3).fill('session.extended'));
    const web = await walk('&label=team%3Dweb&limit=2');
    expect(web.length).toBeGreaterThanOrEqual(6);
    expect(web.every(({ state }) => JSON.stringify(state.labels) === '{"team":"web"}')).toBe(true);
    const head = await app.context.eventStore.lastSequence();
    const { next, ...none } = await page('&type=session.failed');
    expect(none).toEqual({ events: [], more: false });
    // The pool may have been refilled meanwhile.
    expect(next).toBeGreaterThanOrEqual(head);
    expect(next).toBeLessThanOrEqual(await app.context.eventStore.lastSequence());
  });

  it('go on with what is stored later', async () => {
    const { next, more } = await page('&type=session.requested&limit=500');
    expect(more).toBe(false);
    expect((await page(`&type=session.requested&after=${next}`)).events).toEqual([]);
    await app.request('POST', '/api/sessions');
    const { events } = await page(`&type=session.requested&after=${next}`);
    expect(events).toHaveLength(1);
  });

  it('begin at a time, or behind the last event received', async () => {
    const at = new Date(app.now() + 60_000).toISOString();
    expect((await page(`&from=${at}`)).events).toEqual([]);
    expect((await page('&from=2026-01-01T00:00:00Z')).events.length).toBeGreaterThan(5);
    const [first, second] = (await page('')).events;
    const later = await page('', { 'last-event-id': String(first.sequence) });
    expect(later.events[0]).toEqual(second);
    expect((await page(`&from=${second.sequence}&after=0`)).events[0]).toEqual(first);
  });

  it('are of the caller’s organization', async () => {
    const theirs = await walk('', other);
    const ours = await walk('');
    expect(theirs.filter(({ type }) => type === 'session.requested')).toHaveLength(1);
    const known = new Set(ours.map(({ sequence }) => sequence));
    expect(theirs.some(({ sequence }) => known.has(sequence))).toBe(false);
  });

  it('are chosen by Accept, too', async () => {
    const { body } = await app.request('GET', '/api/events?limit=1', undefined, {
      accept: 'application/json',
    });
    expect(body.events).toHaveLength(1);
  });
});

test.each([
  ['?format=json&limit=501', 'limit'],
  ['?format=json&after=1.5', 'after'],
  ['?format=json&after=99999999', 'after'],
  ['?format=xml', 'format'],
  ['?after=1', 'after'],
  ['?limit=1', 'limit'],
])('refuses %s', async (query, field) => {
  const { status, body } = await app.request('GET', `/api/events${query}`);
  expect([status, body.error, body.context.field]).toEqual([400, 'INVALID_REQUEST', field]);
});

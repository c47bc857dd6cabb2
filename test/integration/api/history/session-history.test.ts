import { describe, expect, it, test } from 'vitest';
import { decideServer } from '#src/kernel/domain/fleet/server.ts';
import { carryForward } from '#src/commands/carry-forward.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { throughDoor } from '#src/roles/api/http/door.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { eventually } from '#test/support/service/service.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** A session's history and why it ended, from the first event to the last. */

const { beforeAll, afterAll } = useVirtualTime();

let app: Awaited<ReturnType<typeof startApp>>;
let id: string;
const other = { authorization: 'Bearer other' };
const viewer = { authorization: 'Bearer viewer' };

beforeAll(async () => {
  app = await startApp();
  await app.registerOther();
  id = (await app.request('POST', '/api/sessions', { session_name: 'told' })).body.id;
  await app.request('POST', `/api/sessions/${id}/extend`, { duration: '5m' });
  await app.request('DELETE', `/api/sessions/${id}`);
  await eventually(async () => (await statusOf(id)) === 'stopped', 'the session has stopped');
});
afterAll(() => app?.[Symbol.asyncDispose]());

async function statusOf(session: string): Promise<string> {
  return (await app.request('GET', `/api/sessions/${session}`)).body.status;
}
const history = async (query = '', headers = {}) =>
  (await app.request('GET', `/api/sessions/${id}/history${query}`, undefined, headers)).body;

const types = ({ events }: { events: { type: string }[] }) => events.map(({ type }) => type);
const INTERNAL = /serverIp|"cdp":|"vnc":|fingerprint|repeatable|keyedExtensions|10\.0\.0\.1/;

describe('the history', () => {
  it('has each event with its actor, its cause, what it changed and the state after it', async () => {
    const whole = await history();
    expect(whole.next).toBeNull();
    const one = (type: string) =>
      whole.events.find((event: { type: string }) => event.type === `session.${type}`);
    const [requested, activated, extended] = ['requested', 'activated', 'extended'].map(one);
    const [stopRequested, stopped] = ['stop-requested', 'stopped'].map(one);
    // A browser that is launched for the session is assigned first.
    expect(types(whole).filter((type) => type !== 'session.assigned')).toEqual(
      [requested, activated, extended, stopRequested, stopped].map(({ type }) => type),
    );
    expect(requested).toMatchObject({
      actor: { kind: 'user', id: 'ada' },
      because_of: null,
      data: { name: 'told' },
      state: { status: 'creating' },
    });
    expect(requested.changes).toContainEqual({ field: 'name', to: 'told' });
    expect(activated.because_of).toEqual({
      sequence: requested.sequence,
      type: 'session.requested',
      id: requested.id,
    });
    expect(activated.changes).toContainEqual({ field: 'status', from: 'creating', to: 'active' });
    expect(extended.changes.map(({ field }: { field: string }) => field)).toEqual(
      expect.arrayContaining(['expiresAt', 'creditsReserved']),
    );
    expect(stopRequested.state).toMatchObject({ status: 'stopping', endedReason: 'user' });
    expect(stopped).toMatchObject({
      because_of: { sequence: stopRequested.sequence, type: 'session.stop-requested' },
      state: { status: 'stopped' },
    });
  });

  it('says through which door a request came, and which program was behind it', async () => {
    const change = (labels: object) => app.request('PATCH', `/api/sessions/${doorId}`, { labels });
    const { body } = await app.request('POST', '/api/sessions', { session_name: 'doors' });
    const doorId: string = body.id;
    const client = `agent\n1.0 ${'😀'.repeat(60)}`;
    await throughDoor({ via: 'mcp', client }, () => change({ step: 'one' }));
    await throughDoor({ via: 'webdriver' }, () => change({ step: 'two' }));
    await change({ step: 'three' });
    const path = `/api/sessions/${doorId}`;
    const { events } = (await app.request('GET', `${path}/history`)).body;
    const updates = events.filter(({ type }: { type: string }) => type === 'session.updated');
    expect(updates.map(({ actor }: { actor: object }) => actor)).toEqual([
      { kind: 'user', id: 'ada', via: 'mcp', client: `agent 1.0 ${'😀'.repeat(45)}` },
      { kind: 'user', id: 'ada', via: 'webdriver' },
      { kind: 'user', id: 'ada' },
    ]);
    const { related } = (await app.request('GET', `${path}/why`)).body;
    expect(related).toContainEqual(
      expect.objectContaining({ actor: expect.objectContaining({ via: 'mcp' }) }),
    );
    const page = await app.request('GET', `/api/events?format=json&type=session.updated`);
    expect(page.body.events[0]).toMatchObject({ via: 'mcp', client: expect.any(String) });
    await app.request('DELETE', path);
  });

  it('has nothing internal', async () => {
    expect(JSON.stringify(await history())).not.toMatch(INTERNAL);
  });

  it.each([1, 2, 4, 5, 500])('has every event once, in pages of %i', async (limit) => {
    const { events } = await history();
    const seen: unknown[] = [];
    let after = 0;
    for (let page = 0; page < 6; page += 1) {
      const { events: some, next } = await history(`?limit=${limit}&after=${after}`);
      seen.push(...some);
      if (next === null) break;
      expect(some).toHaveLength(limit);
      expect(next).toBe(some.at(-1).sequence);
      after = next;
    }
    // The states, changes and causes are those of the whole history.
    expect(seen).toEqual(events);
  });

  it('is empty behind the last event', async () => {
    expect(await history('?after=100000')).toEqual({ events: [], next: null });
  });

  test.each(['?limit=0', '?limit=501', '?after=-1', '?after=x', '?before=1'])(
    'refuses %s',
    async (query) => expect((await history(query)).error).toBe('INVALID_REQUEST'),
  );

  it('goes on with events that organizations do not get left out', async () => {
    const { body } = await app.request('POST', '/api/sessions');
    const session = { kind: 'session', organizationId: 'acme', id: body.id } as const;
    const { eventStore } = app.context;
    await carryForward(app.context, session, await eventStore.lastSequence(), newMetadata('test'));
    await app.request('POST', `/api/sessions/${body.id}/extend`, { duration: '5m' });
    const path = `/api/sessions/${body.id}/history`;
    const { events } = (await app.request('GET', path)).body;
    expect(types({ events }).slice(-2)).toEqual(['session.activated', 'session.extended']);
    expect(events.at(-1).sequence - events.at(-2).sequence).toBeGreaterThan(1);
    const page = await app.request('GET', `${path}?after=${events.at(-2).sequence}`);
    expect(page.body).toEqual({ events: events.slice(-1), next: null });
  });
});

describe('why', () => {
  const why = async (session = id, headers = {}) =>
    (await app.request('GET', `/api/sessions/${session}/why`, undefined, headers)).body;

  it('says how the session came to its end, and what is related', async () => {
    const told = await why();
    expect(told.summary).toMatch(
      new RegExp(
        `^Session ${id} of organization acme stopped \\(user\\) at .* \\([56] events\\)\\.$`,
      ),
    );
    expect(told.complete).toBe(true);
    expect(told.chain.map(({ sentence }: { sentence: string }) => sentence)).toEqual([
      expect.stringMatching(/^it stopped; credits used: /),
      'a user requested its stop',
    ]);
    expect(told.chain[1].actor).toEqual({ kind: 'user', id: 'ada' });
    expect(types({ events: told.related })).toEqual(
      expect.arrayContaining([
        ...['session.requested', 'ledger.slot-reserved', 'workload.idle', 'ledger.slot-released'],
      ]),
    );
    const sequences = told.related.map(({ sequence }: { sequence: number }) => sequence);
    expect(sequences).toEqual(sequences.toSorted((a: number, b: number) => a - b));
  });

  it('names a timer as a cause without an event', async () => {
    const { body } = await app.request('POST', '/api/sessions', { duration: '1m' });
    app.pass(61_000);
    await eventually(async () => (await statusOf(body.id)) === 'stopped', 'it has expired');
    expect((await why(body.id)).chain).toMatchObject([
      { sentence: expect.stringMatching(/^it stopped/) },
      { sentence: 'its stop was requested because it expired' },
      { sequence: null, sentence: 'the timer "expiry" fired', actor: null, time: null },
      { sentence: expect.stringMatching(/^session ".*" was requested until/) },
    ]);
  });

  it('says of the fleet what happened, and not who runs it or where', async () => {
    const { body } = await app.request('POST', '/api/sessions');
    const operator = {
      ...newMetadata('cli'),
      actor: { kind: 'operator', id: 'root@db7' } as const,
    };
    const server = { kind: 'server', id: 'srv_1' } as const;
    await handleCommand<'server'>(
      app.context,
      server,
      (state) => decideServer({ type: 'Drain' }, state),
      operator,
    );
    const told = await why(body.id);
    const drained = told.related.find(({ type }: { type: string }) => type === 'server.draining');
    expect(drained).toMatchObject({
      sentence: 'server srv_1 was drained: it takes no new sessions',
      actor: { kind: 'operator', id: 'operator' },
    });
    for (const { actor } of told.related) expect(actor.id).not.toMatch(/srv_|root/);
    expect(JSON.stringify(told)).not.toMatch(INTERNAL);
  });
});

describe.each(['history', 'why'])('access to %s', (what) => {
  it('is for every role', async () => {
    const path = `/api/sessions/${id}/${what}`;
    expect((await app.request('GET', path, undefined, viewer)).status).toBe(200);
  });

  it('is 404 for another organization and for an unknown session', async () => {
    const answers = [
      await app.request('GET', `/api/sessions/${id}/${what}`, undefined, other),
      await app.request('GET', `/api/sessions/ses_unknown/${what}`),
      await app.request('GET', `/api/sessions/..%2F*/${what}`),
    ];
    for (const { status, body } of answers)
      expect([status, body.error]).toEqual([404, 'SESSION_NOT_FOUND']);
  });
});

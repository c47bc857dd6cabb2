import { describe, expect, it } from 'vitest';
import { ServiceError } from '#src/apps/client/client.ts';
import {
  hangUp,
  json,
  refuse,
  startScripted,
  stream,
} from '#test/support/clients/scripted-service.ts';

const OPENING = 'retry: 1\nid: 7\n';
const SESSION = { id: 'ses_1', status: 'active', handoff: null };
const MINUTE = 60_000;

function handoff(status: string, more: object = {}) {
  const requestedAt = Date.parse('2026-11-20T09:30:00.000Z');
  return {
    id: 'hof_1',
    session_id: 'ses_1',
    status,
    instructions: 'Sign in.',
    requested_at: new Date(requestedAt).toISOString(),
    expires_at: new Date(requestedAt + 10 * MINUTE).toISOString(),
    note: null,
    success: null,
    ...more,
  };
}

function event(sequence: number, type: string, data: object): string {
  const body = JSON.stringify({ sequence: String(sequence), type, data });
  return `id: ${sequence}\nevent: ${type}\ndata: ${body}\n\n`;
}
const completed = (id: string, sequence: number) =>
  event(sequence, 'session.handoff-completed', { handoffId: id });

describe('a hand-off', () => {
  it('resolves when it is completed, over lost connections', async () => {
    const done = handoff('completed', { success: true, note: 'Done.' });
    await using service = await startScripted([
      json(200, SESSION),
      hangUp,
      json(201, handoff('requested')),
      stream([OPENING, event(8, 'session.handoff-taken', { handoffId: 'hof_1' })], 'break'),
      hangUp,
      refuse(503, 'UNAVAILABLE', { 'retry-after': '0' }),
      stream([OPENING, completed('hof_0', 9), completed('hof_1', 10)], 'stay'),
      hangUp,
      json(200, done),
    ]);
    const session = await service.client.sessions.get('ses_1');
    expect(session.lastHandoff).toBeNull();
    const requested: string[] = [];
    const asked = { instructions: 'Sign in.', timeout: '10m' };
    expect(await session.handoff(asked, { onRequested: ({ id }) => requested.push(id) })).toEqual(
      done,
    );
    expect(requested).toEqual(['hof_1']);
    const [, first, again, ...rest] = service.asked;
    expect(first).toMatchObject({
      method: 'POST',
      url: '/api/sessions/ses_1/handoffs',
      body: JSON.stringify(asked),
    });
    expect(again?.headers['idempotency-key']).toBe(first?.headers['idempotency-key']);
    expect(rest.map(({ url, headers }) => [url.split('?')[0], headers['last-event-id']])).toEqual([
      ['/api/sessions/ses_1/events', undefined],
      ['/api/sessions/ses_1/events', '8'],
      ['/api/sessions/ses_1/events', '8'],
      ['/api/sessions/ses_1/events', '8'],
      ['/api/sessions/ses_1/handoffs/hof_1', undefined],
      ['/api/sessions/ses_1/handoffs/hof_1', undefined],
    ]);
    expect(rest[0]?.url).toContain('from=2026-11-20T09%3A30%3A00.000Z');
  });

  it('resolves as expired when its session ends', async () => {
    await using service = await startScripted([
      json(201, handoff('requested')),
      stream([OPENING, event(9, 'session.stopped', { reason: 'user' })], 'stay'),
      json(200, handoff('expired')),
    ]);
    expect(
      await service.client.sessions.handoff('ses_1', { instructions: 'Sign in.' }),
    ).toMatchObject({ status: 'expired', success: null, note: null });
  });

  it('that has ended when the request is repeated needs no stream', async () => {
    const done = handoff('completed', { success: false, note: '' });
    await using service = await startScripted([json(201, done), json(200, done)]);
    expect(await service.client.sessions.handoff('ses_1', { instructions: 'x' })).toEqual(done);
    expect(service.asked.length).toBe(2);
  });

  it('is asked for as the caller does: the service refuses what it does not know', async () => {
    await using service = await startScripted([refuse(400, 'INVALID_REQUEST')]);
    const asked = { instructions: 'Sign in.', timout: '1h' };
    const asking = service.client.sessions.handoff('ses_1', asked);
    await expect(asking).rejects.toMatchObject({ error: 'INVALID_REQUEST' });
    expect(JSON.parse(service.asked[0]?.body ?? '')).toEqual(asked);
  });

  it('that is refused, or cancelled, rejects', async () => {
    await using service = await startScripted([
      refuse(409, 'HANDOFF_CONFLICT'),
      json(201, handoff('requested')),
      stream([OPENING], 'stay'),
    ]);
    const { sessions } = service.client;
    const refused = await sessions.handoff('ses_1', { instructions: 'x' }).catch((e: unknown) => e);
    expect(refused).toBeInstanceOf(ServiceError);
    const stop = new AbortController();
    const reason = new Error('no longer needed');
    const options = { signal: stop.signal, onRequested: () => stop.abort(reason) };
    await expect(sessions.handoff('ses_1', { instructions: 'x' }, options)).rejects.toBe(reason);
  });
});

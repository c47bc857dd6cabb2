import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, type ApiClient, type Reply } from '#test/support/clients/api-client.ts';
import type { ServiceLog } from '#test/support/service/service-log.ts';
import { shareService, type SharedService } from '#test/support/shared/shared-service.ts';

/** An extension that the client repeats because its answer was lost. */

const HOUR = 3_600_000;
let shared: SharedService;
let acme: string;
let api: ApiClient;
let log: ServiceLog;

beforeAll(async () => {
  shared = await shareService();
  ({ log } = shared);
  ({ id: acme, owner: api } = await shared.organization());
});
afterAll(() => shared?.[Symbol.asyncDispose]());

function extend(id: string, key: string, duration = '1h'): Promise<Reply> {
  const sent = { body: { duration }, headers: { 'idempotency-key': key } };
  return api.send('POST', `/api/sessions/${id}/extend`, sent);
}

describe('an extension with an Idempotency-Key', () => {
  it('has the same answer when it is repeated, and one effect', async () => {
    const { id, expires_at } = (await api.create({ duration: '1h' })).body;
    const first = await extend(id, 'once');
    expect(Date.parse(first.body.expires_at) - Date.parse(expires_at)).toBe(HOUR);
    expect([first.status, first.headers['idempotent-replayed']]).toEqual([200, undefined]);
    const ledger = await log.ledger(acme);
    // Changes in between do not change the answer.
    const more = await extend(id, 'more');
    expect(Date.parse(more.body.expires_at) - Date.parse(expires_at)).toBe(2 * HOUR);
    await api.stop(id);
    const again = await extend(id, 'once');
    expect([again.status, again.headers['idempotent-replayed']]).toEqual([200, 'true']);
    expect(again.body).toEqual(first.body);
    const after = await log.ledger(acme);
    expect(after?.creditsGranted).toBe(ledger?.creditsGranted);
    expect((await api.get(`/api/sessions/${id}`)).body.credits_reserved).toBe(180);
    await log.ended(acme, id);
  });

  it('is a conflict with another body, and extends nothing', async () => {
    const { id } = (await api.create({ duration: '1h' })).body;
    await extend(id, 'key');
    const before = await log.ledger(acme);
    const other = await extend(id, 'key', '2h');
    expect(errorOf(other)).toBe('409 IDEMPOTENCY_CONFLICT');
    expect(other.body.context).toEqual({ session_id: id });
    expect(await log.ledger(acme)).toEqual(before);
    // A key belongs to one session.
    const { id: another } = (await api.create({ duration: '1h' })).body;
    expect((await extend(another, 'key', '2h')).status).toBe(200);
  });

  it('is remembered if it was accepted, not if it was refused', async () => {
    const { id: organization, owner: poor } = await shared.organization('pro', 100);
    const { id } = (await poor.create({ duration: '1h' })).body;
    const path = `/api/sessions/${id}/extend`;
    const sent = { body: { duration: '1h' }, headers: { 'idempotency-key': 'later' } };
    expect(errorOf(await poor.send('POST', path, sent))).toBe('402 INSUFFICIENT_CREDITS');
    await log.grant(organization, 100);
    const done = await poor.send('POST', path, sent);
    expect([done.status, done.headers['idempotent-replayed']]).toEqual([200, undefined]);
  });

  it('has one effect, over twenty requests at once', async () => {
    const { id, expires_at } = (await api.create({ duration: '1h' })).body;
    const replies = await Promise.all(Array.from({ length: 20 }, () => extend(id, 'stampede')));
    expect(new Set(replies.map(errorOf))).toEqual(new Set(['200']));
    expect(replies.filter(({ headers }) => !headers['idempotent-replayed'])).toHaveLength(1);
    expect(new Set(replies.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    const [first] = replies;
    expect(Date.parse(first?.body.expires_at) - Date.parse(expires_at)).toBe(HOUR);
  });

  it('needs a valid key', async () => {
    const { id } = (await api.create({ duration: '1h' })).body;
    for (const key of ['', 'with space', 'x'.repeat(256)]) {
      const reply = await extend(id, key);
      expect(errorOf(reply)).toBe('400 INVALID_REQUEST');
      expect(reply.body.context).toEqual({ field: 'Idempotency-Key' });
    }
  });
});

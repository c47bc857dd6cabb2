import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { defaultTiers } from '#src/kernel/domain/organization/tiers.ts';
import { errorOf } from '#test/support/clients/api-client.ts';
import type { ServiceLog } from '#test/support/service/service-log.ts';
import { eventually } from '#test/support/service/service.ts';
import { shareService, type SharedService } from '#test/support/shared/shared-service.ts';

/**
 * The limits of an organization: credits and concurrent sessions. Requests a minute are in
 * `two-processes.quiet.test.ts`.
 */

let shared: SharedService;
let log: ServiceLog;

beforeAll(async () => {
  shared = await shareService();
  ({ log } = shared);
});
afterAll(() => shared?.[Symbol.asyncDispose]());

describe('credits', () => {
  it('are reserved by a create and an extension, which are refused if they do not suffice', async () => {
    const { id: poor, owner: client } = await shared.organization('pro', 100);
    const tooLong = await client.create({ duration: '2h' });
    expect(errorOf(tooLong)).toBe('402 INSUFFICIENT_CREDITS');
    expect(tooLong.body.context).toMatchObject({ required: 120, available: 100 });
    expect((await client.get('/api/sessions')).body.total).toBe(0);

    const { id, expires_at } = (await client.create({ duration: '1h' })).body;
    const extension = await client.extend(id, '41m');
    expect(errorOf(extension)).toBe('402 INSUFFICIENT_CREDITS');
    expect(extension.body.context).toMatchObject({ required: 41, available: 40 });
    expect((await client.get(`/api/sessions/${id}`)).body.expires_at).toBe(expires_at);

    expect((await client.extend(id, '40m')).status).toBe(200);
    expect(await log.ledger(poor)).toMatchObject({ creditsAvailable: 0, creditsReserved: 100 });
    await client.stop(id);
    await eventually(
      async () => (await log.ledger(poor))?.creditsAvailable === 99,
      'what was not used is back',
    );
    expect((await client.create({ duration: '1h39m' })).status).toBe(201);
  });

  it('never fall below 0 in ten creates at once', async () => {
    const { id: racing, owner: client } = await shared.organization('pro', 150);
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => client.create({ duration: '1h' })),
    );
    const outcomes = replies.map(errorOf).toSorted();
    expect(outcomes).toEqual([
      ...Array(2).fill('201'),
      ...Array(8).fill('402 INSUFFICIENT_CREDITS'),
    ]);
    expect(await log.ledger(racing)).toMatchObject({ creditsAvailable: 30, slotsInUse: 2 });
  });
});

describe('concurrent sessions', () => {
  const LIMIT = defaultTiers.free.concurrentSessions;

  it('are refused beyond the limit, with the limit and the sessions that count', async () => {
    const { id: crowded, owner: client } = await shared.organization('free', 10_000);
    const replies = await Promise.all(Array.from({ length: 2 * LIMIT }, () => client.create()));
    const made = replies.filter(({ status }) => status === 201).map(({ body }) => body.id);
    expect(made).toHaveLength(LIMIT);

    const refused = await client.create();
    expect(errorOf(refused)).toBe('429 SESSION_LIMIT_EXCEEDED');
    expect(refused.body.context.limit).toBe(LIMIT);
    expect(new Set(refused.body.context.session_ids)).toEqual(new Set(made));

    await client.stop(made[0]);
    await eventually(
      async () => (await client.create()).status === 201,
      'a session that ended makes room',
    );
    expect(await log.ledger(crowded)).toMatchObject({ slotsInUse: LIMIT });
  });
});

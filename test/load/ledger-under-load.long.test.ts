import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { connectApi, type ApiClient, type Reply } from '#test/support/clients/api-client.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { bss } from '#test/support/clients/command-line.ts';
import { MASTER_KEY, startSecondApi } from '#test/support/service/two-processes.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';

/** Many creates at once, through three API processes, on one organization. */

const CREATES = 200;
const LIMIT = 5;
const ENV = {
  MASTER_KEY,
  TIERS: JSON.stringify({
    free: { requests_per_minute: 1e6, concurrent_sessions: LIMIT },
    pro: { requests_per_minute: 1e6, concurrent_sessions: 1e6 },
  }),
  POOL_MAX: '40',
  POOL_MIN_IDLE: '4',
};
let services: RunningService[];
let apis: ApiClient[];
let log: ServiceLog;

beforeAll(async () => {
  const first = await startService(ENV);
  services = [first];
  services.push(...(await Promise.all([startSecondApi(first, ENV), startSecondApi(first, ENV)])));
  apis = await Promise.all(services.map(({ apiUrl }) => connectApi(apiUrl)));
  log = await openLog(first);
});
afterAll(async () => {
  await log?.[Symbol.asyncDispose]();
  for (const service of services?.toReversed() ?? []) await service[Symbol.asyncDispose]();
});

/** An organization's owner at each of the processes. */
async function organization(id: string, tier: 'free' | 'pro', credits: number) {
  await log.register(id, tier, credits);
  const key = await log.issueKey(id, 'owner', apis[0] as ApiClient);
  const clients = apis.map((api) => api.as(key));
  for (const client of clients)
    await eventually(async () => (await client.get('/api/status')).status === 200, 'key is taken');
  return clients;
}

async function createMany(clients: ApiClient[], duration: string): Promise<Reply[]> {
  const creates = Array.from({ length: CREATES }, (_, index) =>
    (clients[index % clients.length] as ApiClient).create({ duration }),
  );
  return Promise.all(creates);
}

const madeOf = (replies: Reply[]): string[] =>
  replies.filter(({ status }) => status === 201).map(({ body }) => body.id as string);

async function stopAll(clients: ApiClient[], ids: readonly string[]): Promise<void> {
  for (const [index, id] of ids.entries())
    expect((await clients[index % clients.length]?.stop(id))?.status).toBe(200);
}

describe(`${CREATES} creates at once through three API processes`, () => {
  it(`fill a limit of ${LIMIT} exactly; refusals list the sessions that count, and no slot is lost`, async () => {
    const clients = await organization('limited', 'free', 1e6);
    for (let round = 1; round <= 2; round += 1) {
      const replies = await createMany(clients, '1h');
      const made = madeOf(replies);
      expect(made).toHaveLength(LIMIT);
      const refused = replies.filter(({ status }) => status !== 201);
      expect(refused).toHaveLength(CREATES - LIMIT);
      for (const { status, body } of refused) {
        expect([status, body.error]).toEqual([429, 'SESSION_LIMIT_EXCEEDED']);
        expect(body.context.limit).toBe(LIMIT);
        expect(new Set(body.context.session_ids)).toEqual(new Set(made));
      }
      await stopAll(clients, made);
      await eventually(
        async () => (await log.ledger('limited'))?.slotsInUse === 0,
        'all slots are back',
      );
    }
    const { ledger, sessions } = await auditLog(services[0] as RunningService, 'limited');
    expect(sessions.size).toBe(2 * LIMIT);
    expect(ledger).toMatchObject({ slotsInUse: 0, sessionsEnded: 2 * LIMIT, creditsReserved: 0 });
  });

  it('spend credits for exactly as many as there are credits for, and lose none', async () => {
    const AFFORDED = 7;
    const clients = await organization('poor', 'pro', AFFORDED * 30 + 29);
    const replies = await createMany(clients, '30m');
    const made = madeOf(replies);
    expect(made).toHaveLength(AFFORDED);
    for (const { status, body } of replies.filter((reply) => reply.status !== 201)) {
      expect([status, body.error]).toEqual([402, 'INSUFFICIENT_CREDITS']);
      expect(body.context).toMatchObject({ required: 30, available: 29 });
    }
    await stopAll(clients, made);
    await eventually(async () => (await log.ledger('poor'))?.slotsInUse === 0, 'all have ended');
    // Each ran into its first minute.
    expect((await auditLog(services[0] as RunningService, 'poor')).ledger).toMatchObject({
      creditsAvailable: AFFORDED * 30 + 29 - AFFORDED,
      creditsUsed: AFFORDED,
      creditsReserved: 0,
    });
  });

  it('leave a ledger that `bss audit ledger` finds consistent', async () => {
    const { code, stdout } = await bss(services[0] as RunningService, 'audit', 'ledger', '--json');
    expect(code).toBe(0);
    const { agrees, organizations } = JSON.parse(stdout);
    expect(agrees).toBe(true);
    expect(organizations).toContainEqual(
      expect.objectContaining({ organization_id: 'limited', sessions: 2 * LIMIT, open: 0 }),
    );
  });
});

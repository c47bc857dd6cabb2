import { rm } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { bss } from '#test/support/clients/command-line.ts';
import { MASTER_KEY, startSecondApi } from '#test/support/service/two-processes.ts';
import { openLog } from '#test/support/service/service-log.ts';
import { soakOr } from '#test/support/soak.ts';

/**
 * Sessions and their organization's ledger after an API process is killed amid creates. A kill that
 * separates a session from its ledger entry shows at any number of creates; the soak kills at three
 * moments, early, in the middle and late, and among more conflicts.
 */
const CREATES = soakOr(1_000, 300);
/** Creates acknowledged before the kill, and whether all sessions are stopped afterwards. */
const KILLS: [acknowledged: number, stopsAll: boolean][] = soakOr(
  [
    [20, false],
    [400, true],
    [850, false],
  ],
  [[120, true]],
);
const AT_ONCE = 60;
const plenty = { requests_per_minute: 1e9, concurrent_sessions: 1e6, credits: 1e9 };
const ENV = {
  MASTER_KEY,
  TIERS: JSON.stringify({ max: plenty }),
  POOL_MAX: '10',
  POOL_MIN_IDLE: '2',
  QUEUE_MAX: '1000000',
  QUEUE_TIMEOUT: '1h',
};

test.each(KILLS)(
  `an API killed with -9 after %i of ${CREATES} creates leaves ledger and sessions in agreement`,
  async (moment, stopsAll) => {
    await using first = await startService(ENV);
    await using second = await startSecondApi(first, ENV);
    const third = await startSecondApi(first, ENV);
    const made = new Set<string>();
    const outcomes = new Map<string, number>();
    const creating = createAll([first, second, third], made, outcomes);
    await eventually(() => made.size >= moment, `${moment} creates`, 120_000);
    await third.end('SIGKILL');
    await rm(third.dataDir, { recursive: true, force: true });
    await creating;

    const {
      '201': done = 0,
      'no answer': lost = 0,
      '503': later = 0,
      ...others
    } = Object.fromEntries(outcomes);
    expect([others, done]).toEqual([{}, made.size]);
    expect(done + lost + later).toBe(CREATES);
    // Hardly any 503: a conflict on the ledger is retried, not refused.
    expect(later).toBeLessThan(CREATES / 100);
    const { sessions } = await auditLog(first);
    for (const id of made) expect([id, sessions.has(id)]).toEqual([id, true]);
    // A create whose answer was lost may have made a session; none was made twice.
    expect(sessions.size).toBeLessThanOrEqual(CREATES);
    expect(sessions.size).toBeGreaterThanOrEqual(made.size);
    await expectAgreement(first, sessions.size);

    if (!stopsAll) return;
    await stopAll([first, second], [...sessions.keys()]);
    await using log = await openLog(first);
    await eventually(
      async () => (await log.ledger('dev'))?.slotsInUse === 0,
      'every slot is back',
      120_000,
    );
    const { ledger } = await auditLog(first);
    expect(ledger).toMatchObject({ sessionsEnded: sessions.size, creditsReserved: 0 });
    await expectAgreement(first, sessions.size);
  },
);

async function expectAgreement(service: RunningService, sessions: number): Promise<void> {
  const { code, stdout } = await bss(service, 'audit', 'ledger', '--json');
  expect([code, stdout.slice(0, 2_000)]).toEqual([0, expect.stringContaining('"agrees":true')]);
  const { organizations } = JSON.parse(stdout);
  expect(organizations).toMatchObject([{ organization_id: 'dev', sessions, differences: [] }]);
}

/** Sends each create once, to the processes in turn. */
async function createAll(
  services: readonly RunningService[],
  made: Set<string>,
  outcomes: Map<string, number>,
): Promise<void> {
  let asked = 0;
  const work = async () => {
    while (asked < CREATES) {
      const service = services[asked % services.length] as RunningService;
      asked += 1;
      const answer = await service
        .request('POST', '/api/sessions', { duration: '1h' }, { prefer: 'respond-async' })
        .catch(() => null);
      const outcome = answer === null ? 'no answer' : String(answer.status);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      if (answer?.status === 201) made.add(answer.body.id as string);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

async function stopAll(services: readonly RunningService[], ids: string[]): Promise<void> {
  const work = async (service: RunningService) => {
    for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
      const { status } = await service.request('DELETE', `/api/sessions/${id}`);
      // 503: the event store does not keep up. Retry.
      if (status === 503) ids.push(id);
      else expect(status).toBe(200);
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_, index) => work(services[index % 2] as never)));
}

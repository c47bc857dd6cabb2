import { rm } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { bss } from '#test/support/clients/command-line.ts';
import { MASTER_KEY, startSecondApi } from '#test/support/service/second-api-process.ts';
import { openLog } from '#test/support/service/service-log.ts';

/** Sessions and their ledger, where API processes are killed while they create. */

const CREATES = 1_000;
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

/** Creates that were acknowledged when it is killed: at the begin, in the middle, near the end. */
test.each([
  [20, false],
  [400, true],
  [850, false],
])(
  `an API killed with -9 after %i of ${CREATES} creates leaves ledger and sessions in agreement`,
  async (moment, endsAll) => {
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
    // Not for want of the ledger: its conflicts are tried again until they are none.
    expect(later).toBeLessThan(CREATES / 100);
    const { sessions } = await auditLog(first);
    for (const id of made) expect([id, sessions.has(id)]).toEqual([id, true]);
    // What was lost on the way to its caller may be there; more than was asked for is not.
    expect(sessions.size).toBeLessThanOrEqual(CREATES);
    expect(sessions.size).toBeGreaterThanOrEqual(made.size);
    await expectAgreement(first, sessions.size);

    if (!endsAll) return;
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

/** Each create is asked for once, of one of the processes in turn, whatever comes of it. */
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
      // A log that does not keep up says so, and the caller comes again.
      if (status === 503) ids.push(id);
      else expect(status).toBe(200);
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_, index) => work(services[index % 2] as never)));
}

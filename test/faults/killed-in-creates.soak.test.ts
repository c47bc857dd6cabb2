import { expect, test } from 'vitest';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { expectAsRecorded, readLives } from '#test/support/service/recorded-lives.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { soakOr } from '#test/support/soak.ts';

const PARALLEL = 50;
/**
 * Acknowledged creates after which the service is killed: the first, some, nearly all. CI has the
 * two ends.
 */
const MOMENTS = soakOr([1, 15, 40], [1, 40]);
const PLENTY = JSON.stringify({
  max: { requests_per_minute: 1_000_000, concurrent_sessions: 1e5 },
});
const ENV = {
  POOL_MIN_IDLE: '4',
  POOL_MAX: '400',
  SIMULATED_LAUNCH_MS: '100ms',
  QUEUE_AFTER: '200ms',
  QUEUE_TIMEOUT: '3s',
  TIERS: PLENTY,
};

test(`a service killed with -9 during ${PARALLEL} creates has each acknowledged session once after its restart, a consistent ledger, and lives that replay`, async () => {
  await using service = await startService(ENV);
  const acknowledged: string[] = [];
  for (const [index, moment] of MOMENTS.entries()) {
    const before = new Set(acknowledged);
    const creates = createMany(service, acknowledged);
    await eventually(() => acknowledged.length - before.size >= moment, `${moment} creates`);
    await service.end('SIGKILL');
    await creates;
    await service.startAgain();

    const { sessions } = await settle(service);
    for (const id of acknowledged) expect([id, sessions.has(id)]).toEqual([id, true]);
    expect(sessions.size).toBeLessThanOrEqual(PARALLEL * (index + 1));
    // A simulated browser ends with its process, and so does a session that had one. A request that
    // the killed process was handling is redelivered, or ends with its time in the queue.
    for (const { state } of sessions.values())
      if (state.status !== 'active')
        expect(state.endedReason).toBe(state.startedAt === null ? 'queue_timeout' : 'server_lost');
    for (const id of before) expect(sessions.get(id)?.state.status).toBe('failed');
    await listAgrees(service, sessions.size);
  }
  const { sessions } = await auditLog(service);
  expectAsRecorded(await readLives(service, sessions.keys()));
});

/** Resolves when each has been answered, or its connection cut. */
async function createMany(service: RunningService, acknowledged: string[]): Promise<void> {
  await Promise.allSettled(
    Array.from({ length: PARALLEL }, async () => {
      const { status, body } = await service.request('POST', '/api/sessions', { duration: '1h' });
      if (status === 201) acknowledged.push(body.id);
    }),
  );
}

/** Resolves once each session has a browser of the new process or has ended. */
async function settle(service: RunningService) {
  return eventually(async () => {
    const audit = await auditLog(service);
    const states = [...audit.sessions.values()].map(({ state }) => state);
    const isSettled = states.every(({ status }) => status === 'active' || isFinal(status));
    return isSettled && audit;
  }, 'no session waits');
}

async function listAgrees(service: RunningService, total: number): Promise<void> {
  const list = await eventually(async () => {
    const { status, body } = await service.request('GET', '/api/sessions');
    return status === 200 && body;
  }, 'the list answers');
  expect(list.total).toBe(total);
  const { sessions } = await auditLog(service);
  const active = [...sessions.values()].filter(({ state }) => state.status === 'active').length;
  await eventually(async () => {
    const { status, body } = await service.request('GET', '/api/status');
    if (status !== 200) return false;
    const { autoscaler, current_load: load } = body;
    return load.active_sessions === active && autoscaler.pool_status.busy === active;
  }, `${active} sessions are active, and as many browsers busy`);
}

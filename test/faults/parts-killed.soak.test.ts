import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { startTraffic } from '#test/support/load/persistent-traffic.ts';
import { soakOr } from '#test/support/soak.ts';

/** The promised time until the service is ready and healthy again. */
const WHOLE_WITHIN_MS = 15_000;
/**
 * More than once: a restarted part must be supervised like the first one. CI kills it twice, which
 * is enough for that.
 */
const TIMES = soakOr(3, 2);
const PLENTY = JSON.stringify({
  max: { requests_per_minute: 1_000_000, concurrent_sessions: 1e5 },
});

test.each(['nats', 'redis'] as const)(
  `%s killed ${TIMES} times during creates is back within 15 s, and no session is lost or doubled`,
  async (part) => {
    await using service = await startService({
      POOL_MIN_IDLE: '8',
      POOL_MAX: '2000',
      TIERS: PLENTY,
    });
    const traffic = startTraffic(service);
    for (let time = 1; time <= TIMES; time += 1) {
      await traffic.goesOn(20, WHOLE_WITHIN_MS);
      const before = await eventually(() => pidOf(service, part), `${part} runs`);
      process.kill(before, 'SIGKILL');
      await isWhole(service, before, part);
    }
    await traffic.goesOn(20, WHOLE_WITHIN_MS);
    await traffic.finish();

    // Clients get the API's own 503 at worst.
    for (const outcome of traffic.outcomes.keys())
      expect(['201', '200', '503 UNAVAILABLE']).toContain(outcome);
    const { keys, created, stopped } = traffic;
    const { sessions } = await auditLog(service);
    const names = [...sessions.values()].map(({ state }) => state.name);
    expect(names.toSorted()).toEqual([...keys].toSorted());
    for (const [key, id] of created) expect(sessions.get(id)?.state.name).toBe(key);
    for (const id of stopped)
      expect([id, sessions.get(id)?.state.stopRequestedAt]).not.toEqual([id, null]);
    await agrees(service, created.size);
    expect(service.output()).not.toContain('"msg":"unexpected error"');
  },
);

/** Waits until the part is a new process and the service reports ready and healthy. */
async function isWhole(service: RunningService, before: number, part: Part): Promise<void> {
  await eventually(
    async () => {
      const now = await pidOf(service, part);
      if (now === null || now === before) return false;
      const ready = await service.request('GET', '/api/ready');
      const health = await service.request('GET', '/api/health');
      return ready.status === 200 && health.body.status === 'healthy';
    },
    'the service is ready and healthy again',
    WHOLE_WITHIN_MS,
  );
}

/** The list has every session, with the status that the event store has once none changes. */
async function agrees(service: RunningService, total: number): Promise<void> {
  const sessions = await eventually(async () => {
    const audit = await auditLog(service);
    const states = [...audit.sessions.values()].map(({ state }) => state);
    const isSettled = states.every(({ status }) => status === 'active' || isFinal(status));
    return isSettled && audit.sessions;
  }, 'no session waits or is ending');
  const list = await eventually(async () => {
    const { status, body } = await service.request('GET', '/api/sessions?limit=100');
    const isSame = (row: { id: string; status: string }) =>
      row.status === sessions.get(row.id)?.state.status;
    return status === 200 && body.sessions.every(isSame) && body;
  }, 'the list agrees with the event store');
  expect(list.total).toBe(total);
}

type Part = 'nats' | 'redis';

/** null while none runs. */
async function pidOf({ dataDir }: RunningService, part: Part): Promise<number | null> {
  const text = await readFile(join(dataDir, `${part}.pid`), 'utf8').catch(() => null);
  return text === null ? null : (JSON.parse(text) as { pid: number }).pid;
}

import { expect, test } from 'vitest';
import { auditLog, nameOf } from '#test/support/service/audit-event-store.ts';
import { stillRunning } from '#test/support/service/processes.ts';
import {
  createWarm,
  openScreen,
  reaches,
  startRealService,
  tracesOf,
} from '#test/support/service/real-session.ts';

test('a session of one minute expires after one minute', async () => {
  // A busy machine queues no session: that would be one more event of its life.
  const pool = { POOL_MIN_IDLE: '1', POOL_MAX: '2', QUEUE_AFTER: '1h' };
  await using service = await startRealService(pool);
  const short = await createWarm(service, { duration: '1m' });
  const viewer = await openScreen(short, short.vnc_password);
  const { processes } = tracesOf(service, short.autoscaler_workload_id);
  expect(await viewer.closed).toBe(4002);
  const ended = await reaches(service, short.id, 'stopped');
  expect(ended.ended_reason).toBe('expired');
  expect(stillRunning(processes)).toEqual([]);
  const { sessions } = await auditLog(service);
  const events = sessions.get(short.id)?.events ?? [];
  const names = events.map(nameOf).filter((name) => name !== 'accessed');
  // The warning a minute before the end is immediate here, with the browser or before it.
  expect(names.filter((name) => name === 'expiry-warning')).toHaveLength(1);
  expect(names.filter((name) => name !== 'expiry-warning')).toEqual([
    ...['requested', 'activated', 'stop-requested', 'stopped'],
  ]);
  const asked = events.find(({ type }) => type === 'session.stop-requested');
  expect(Date.parse(asked?.time ?? '')).toBeGreaterThanOrEqual(Date.parse(short.expires_at));
});

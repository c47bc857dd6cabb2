import { expect, onTestFinished, test } from 'vitest';
import type { SessionState } from '#events/session.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { keepFilled } from '#src/roles/provisioner/pool/launch.ts';
import { DEFAULTS } from '#src/roles/provisioner/pool/options.ts';
import { createPool, type WaitingRequest } from '#src/roles/provisioner/pool/pool.ts';

const identity = { organizationId: 'a', id: 'a1' };
const LIMITS = { minIdle: 0, maxIdle: 0, max: 1, launchesAtOnce: 1, browserBytes: 0 };

/**
 * What server srv_1, on which no browser can be launched, does with an accepted request. Another
 * server is live.
 * @param pulled the request's state when it was pulled
 * @param assigned its state once this server had accepted it
 */
async function afterFailures(pulled: Partial<SessionState>, assigned: Partial<SessionState>) {
  const decided = Promise.withResolvers<SessionCommand['type']>();
  const reporter = {
    queue: async () => undefined,
    session: async (_: unknown, command: SessionCommand) => decided.resolve(command.type),
  };
  const pool = createPool({
    server: { id: 'srv_1', ip: '10.0.0.1' },
    browsers: { launch: () => Promise.reject(new Error('no display')) },
    reporter,
    log: { error: () => undefined },
    now: () => 0,
    vncPasswordOf: () => 'password',
    limits: LIMITS,
    hasOthers: async () => true,
  } as unknown as Parameters<typeof createPool>[0]);
  pool.isOpen = true;
  onTestFinished(keepFilled(pool));
  pool.waiting.push({
    identity,
    event: { id: 'evt_1', metadata: {}, state: pulled } as WaitingRequest['event'],
    options: DEFAULTS,
    failures: 0,
    assigned: Promise.resolve(assigned as SessionState),
  });
  pool.changed();
  return decided.promise;
}

test('a request whose launches fail is requeued once by a server, then fails', async () => {
  expect(await afterFailures({}, {})).toBe('RequeueSession');
  expect(await afterFailures({}, { triedServers: ['srv_2'] })).toBe('RequeueSession');
  const tried = { triedServers: ['srv_1'] };
  expect(await afterFailures(tried, tried)).toBe('FailSession');
});

test('a requeue counts although the request was pulled by an item from before it', async () => {
  expect(await afterFailures({}, { triedServers: ['srv_1'] })).toBe('FailSession');
});

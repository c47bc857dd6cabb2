import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { docker, hasDocker, testNetwork } from '#test/support/servers/docker-engine.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import {
  startSplitService,
  type SessionKind,
  type SplitService,
} from '#test/support/service/split-service.ts';
import { isSoak } from '#test/support/soak.ts';

/**
 * A part of the service is killed with -9 as soon as the event store has an event of a session's
 * life. Within a minute the session has one of the outcomes in its row, nothing leaks, and event
 * store, read model, pool and engine agree.
 *
 * CI kills each target at the steps named beside it, so that something is killed at each step. The
 * soak kills each at all seven, and only the soak finds a fault of a target at another step.
 */

/** What becomes of the session: it is active, or the reason of its end. */
type Outcome = 'active' | 'server_lost' | 'user' | 'browser_crashed';
type Row = [killedAt: string, session: SessionKind, outcomes: Outcome[]];
type Target = { kill: () => Promise<void>; rows: Row[]; inCi: string[] };

/** A simulated browser, or one that is a child process, ends with its provisioner. */
const BROWSERS_END: Row[] = [
  ['session.requested', 'warm', ['active', 'server_lost']],
  ['session.assigned', 'cold', ['active']],
  ['workload.launching', 'cold', ['active']],
  ['workload.idle', 'cold', ['active', 'server_lost']],
  ['session.activated', 'warm', ['server_lost']],
  ['session.stop-requested', 'stopping', ['user']],
  ['workload.terminating', 'stopping', ['user']],
];
/** A Docker browser outlives its provisioner, which adopts it after the restart. */
const BROWSERS_ADOPTED: Row[] = [
  ['session.requested', 'warm', ['active', 'server_lost']],
  ['session.assigned', 'cold', ['active']],
  ['workload.launching', 'cold', ['active']],
  ['workload.idle', 'cold', ['active', 'server_lost']],
  ['session.activated', 'warm', ['active']],
  ['session.stop-requested', 'stopping', ['user']],
  ['workload.terminating', 'stopping', ['user']],
];
/** Sessions outlive NATS and Redis. */
const SESSIONS_STAY: Row[] = [
  ['session.requested', 'warm', ['active']],
  ['session.assigned', 'cold', ['active']],
  ['workload.launching', 'cold', ['active']],
  ['workload.idle', 'cold', ['active']],
  ['session.activated', 'warm', ['active']],
  ['session.stop-requested', 'stopping', ['user']],
  ['workload.terminating', 'stopping', ['user']],
];
/** A session that has a container ends with it; one without gets another. */
const CONTAINERS_END: Row[] = [
  ['session.requested', 'warm', ['active', 'browser_crashed']],
  ['session.assigned', 'cold', ['active', 'browser_crashed']],
  ['workload.launching', 'cold', ['active', 'browser_crashed']],
  ['workload.idle', 'cold', ['active', 'browser_crashed']],
  ['session.activated', 'warm', ['active', 'browser_crashed']],
  ['session.stop-requested', 'stopping', ['user']],
  ['workload.terminating', 'stopping', ['user']],
];

/** By the browsers of the service, which is one for all targets with the same browsers. */
const targets: Record<string, [name: string, Target][]> = {
  simulated: [
    [
      'the provisioner',
      {
        kill: killProvisioner,
        rows: BROWSERS_END,
        inCi: [
          'session.requested',
          'session.assigned',
          'session.stop-requested',
          'workload.terminating',
        ],
      },
    ],
    [
      'nats-server',
      { kill: () => killStore('nats'), rows: SESSIONS_STAY, inCi: ['session.requested'] },
    ],
    [
      'redis-server',
      { kill: () => killStore('redis'), rows: SESSIONS_STAY, inCi: ['session.activated'] },
    ],
  ],
  process: [
    ['the provisioner', { kill: killProvisioner, rows: BROWSERS_END, inCi: ['session.activated'] }],
  ],
  docker: [
    [
      'the provisioner',
      {
        kill: killProvisioner,
        rows: BROWSERS_ADOPTED,
        inCi: ['workload.launching', 'session.activated'],
      },
    ],
    [
      'every browser container',
      {
        kill: async () => containers().forEach(killContainer),
        rows: CONTAINERS_END,
        inCi: ['workload.idle', 'session.activated'],
      },
    ],
  ],
};
const kinds = Object.keys(targets).filter((browsers) => browsers !== 'docker' || hasDocker());

let service: SplitService;

describe.each(kinds)('with %s browsers', (browsers) => {
  beforeAll(async () => {
    const pool = { POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '1', POOL_MAX: '3', QUEUE_AFTER: '200ms' };
    const ending = { DOCKER_ON_SHUTDOWN: 'stop', DOCKER_NETWORK: testNetwork() };
    service = await startSplitService(
      { ...pool, SIMULATED_LAUNCH_MS: '400ms' },
      { BROWSERS: browsers, ...ending },
    );
  });
  afterAll(() => service?.[Symbol.asyncDispose]());

  describe.each(targets[browsers] ?? [])('%s, killed with -9 at', (_, { kill, rows, inCi }) => {
    test.each(rows.filter(([killedAt]) => isSoak || inCi.includes(killedAt)))(
      '%s of a %s session leaves it %j and everything consistent',
      async (killedAt, session, outcomes) => {
        await service.untilReady();
        const lossesBefore = await service.timesLost();
        const id = await service.bringTo(killedAt, session);
        await kill();

        await service.outcomeOf(id);
        await service.untilConsistent({
          containers: () => (browsers === 'docker' ? [containers().length] : []),
        });
        // Again: the first may be from before the main process has heard of the session's loss.
        const outcome = await service.outcomeOf(id);
        // A restart that outlasts the server's lease, as on a busy machine, is recorded as a loss.
        const isRecordedLoss =
          outcome === 'server_lost' && (await service.timesLost()) > lossesBefore;
        if (!isRecordedLoss) expect(outcomes).toContain(outcome);
        await auditLog(service.main);
        if (outcome === 'active') await service.main.request('DELETE', `/api/sessions/${id}`);
      },
    );
  });
});

async function killProvisioner(): Promise<void> {
  await service.provisioner.end('SIGKILL');
  await service.provisioner.startAgain();
}

async function killStore(part: 'nats' | 'redis'): Promise<void> {
  const text = await readFile(join(service.main.dataDir, `${part}.pid`), 'utf8');
  process.kill((JSON.parse(text) as { pid: number }).pid, 'SIGKILL');
}

/** Ids of the containers of the server's browsers. */
function containers(): string[] {
  const label = `label=browser-session-service.server=${service.serverId}`;
  return docker('ps', '-aq', '--filter', label).split('\n').filter(Boolean);
}

/** Leaves out a container that is not started yet or has just ended. */
function killContainer(id: string): void {
  try {
    docker('kill', id);
  } catch (error) {
    if (!/is not running|No such container/.test(String(error))) throw error;
  }
}

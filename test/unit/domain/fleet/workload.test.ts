import { describe, it, test } from 'vitest';
import type { WorkloadEvent } from '#events/workload.ts';
import { workload } from '#test/support/given-when-then.ts';

const { given } = workload;
const provisioning: WorkloadEvent = { type: 'workload.provisioning', data: { serverId: 'srv_1' } };
const launching: WorkloadEvent = { type: 'workload.launching', data: {} };
const idle: WorkloadEvent = { type: 'workload.idle', data: { launchMs: 412 } };
const owner = { organizationId: 'org_acme', sessionId: 'ses_1' };
const assigned: WorkloadEvent = { type: 'workload.assigned', data: owner };
const terminating: WorkloadEvent = {
  type: 'workload.terminating',
  data: { reason: 'session_ended' },
};
const terminated: WorkloadEvent = {
  type: 'workload.terminated',
  data: { reason: 'session_ended', exitCode: 0 },
};
const life = [provisioning, launching, idle, assigned, terminating, terminated];

const provision = { type: 'Provision', serverId: 'srv_1' } as const;
const launch = { type: 'Launch' } as const;
const reportIdle = { type: 'ReportIdle', launchMs: 412 } as const;
const assign = { type: 'Assign', ...owner } as const;
const terminate = { type: 'Terminate', reason: 'session_ended' } as const;
const reportTerminated = {
  type: 'ReportTerminated',
  reason: 'session_ended',
  exitCode: 0,
} as const;

describe('a workload', () => {
  test.each([
    [provision, provisioning, 'provisioning'],
    [launch, launching, 'launching'],
    [reportIdle, idle, 'idle'],
    [assign, assigned, 'busy'],
    [terminate, terminating, 'terminating'],
    [reportTerminated, terminated, 'terminated'],
  ] as const)('by $type', (command, event, status) => {
    const index = life.indexOf(event);
    given(...life.slice(0, index))
      .when(command)
      .then(event);
    given(...life.slice(0, index + 1)).stateIs({ id: 'wl_1', serverId: 'srv_1', status });
  });

  it('names its session from its assignment to its end', () => {
    given(provisioning).stateIs({ organizationId: null, sessionId: null });
    given(...life).stateIs(owner);
  });

  it('may be ended in every state', () => {
    for (const count of [1, 2, 3, 4]) {
      given(...life.slice(0, count))
        .when(terminate)
        .then(terminating);
      given(...life.slice(0, count))
        .when(reportTerminated)
        .then(terminated);
    }
  });
});

describe('a report that is older than a workload’s state', () => {
  it('changes nothing', () => {
    given(provisioning).when(provision).thenNothing();
    given(provisioning, launching).when(launch).thenNothing();
    given(provisioning, launching, idle).when(reportIdle).thenNothing();
    given(provisioning, launching, idle, assigned).when(reportIdle).thenNothing();
    given(...life.slice(0, 5))
      .when(reportIdle)
      .thenNothing();
    given(...life.slice(0, 5))
      .when(terminate)
      .thenNothing();
  });

  it('changes nothing after the end', () => {
    for (const command of [provision, launch, reportIdle, assign, terminate, reportTerminated])
      given(...life)
        .when(command)
        .thenNothing();
  });

  it('changes nothing for an unknown workload', () => {
    for (const command of [launch, reportIdle, assign, terminate, reportTerminated])
      given().when(command).thenNothing();
  });
});

describe('a browser', () => {
  it('is used once: it serves no second session', () => {
    given(...life.slice(0, 4))
      .when({ ...assign, sessionId: 'ses_2' })
      .thenNothing();
  });

  it('is not assigned before it answers', () => {
    given(provisioning).when(assign).thenNothing();
    given(provisioning, launching).when(assign).thenNothing();
  });
});

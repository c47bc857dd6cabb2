import { expect, test } from 'vitest';
import type { SessionState } from '#events/session.ts';
import type { WorkloadState } from '#events/workload.ts';
import { leaksOf, planSteps, type Observation } from '#src/roles/provisioner/reconcile/plan.ts';
import { foldAll, sessionRef } from '#test/support/given-when-then.ts';
import {
  activated,
  assigned,
  browser,
  requested,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

/** The differences between the log and what runs on a server, and the steps that correct them. */

const nothing: Observation = {
  ...{ workloads: [], sessions: [], observed: [] },
  ...{
    inCharge: new Set(),
    ending: new Set(),
    running: new Set(),
    idle: new Set(),
    taken: new Set(),
  },
};
const running = activated(T0, browser('wl_1'));
const active = session(running);
const stopping = session(running, stopRequested());
const accepted = session(assigned('wl_1'));

function session(...events: Parameters<typeof foldAll<'session'>>[2][number][]): SessionState {
  const state = foldAll<'session'>(sessionRef, null, [requested(), ...events]);
  if (state === null) throw new Error('no session');
  return state;
}
function workload(status: WorkloadState['status'], more: Partial<WorkloadState> = {}) {
  const owner = { organizationId: null, sessionId: null };
  return { id: 'wl_1', serverId: 'srv_1', status, ...owner, ...more };
}
const there = (isAdoptable: boolean) => [{ workloadId: 'wl_1', isAdoptable }];
const closed = [{ workloadId: 'wl_1', isAdoptable: false, closedAt: T0 }];
const frenchOptions = { browser: { viewport: null, locale: 'fr-FR', timezone: null } };

const table: [string, Partial<Observation>, string[]][] = [
  [
    'the log and the server agree',
    { inCharge: ids(), workloads: [workload('busy')], sessions: [active] },
    [],
  ],
  [
    'the browser of an active session runs',
    { observed: there(true), sessions: [active] },
    ['adopt'],
  ],
  ['an idle browser runs', { observed: there(true), workloads: [workload('idle')] }, ['adopt']],
  [
    'an idle browser has special options',
    { observed: there(true), workloads: [workload('idle', frenchOptions)] },
    ['stop-stray', 'report-gone'],
  ],
  [
    'the browser was being launched',
    { observed: there(true), workloads: [workload('launching')] },
    ['stop-stray', 'report-gone'],
  ],
  [
    'the browser was assigned, but no session has it',
    { observed: there(true), workloads: [workload('busy')] },
    ['stop-stray', 'report-gone'],
  ],
  [
    'the browser of an active session cannot be adopted',
    { observed: there(false), sessions: [active], workloads: [workload('busy')] },
    ['stop-stray', 'fail-session', 'report-gone'],
  ],
  [
    'the browser of a stopping session runs',
    { observed: there(true), sessions: [stopping], workloads: [workload('busy')] },
    ['adopt'],
  ],
  [
    'the browser of a stopping session cannot be adopted',
    { observed: there(false), sessions: [stopping], workloads: [workload('busy')] },
    ['stop-stray', 'confirm-stopped', 'report-gone'],
  ],
  [
    'the pool missed that a session is stopping',
    { inCharge: ids(), sessions: [stopping] },
    ['end-workload'],
  ],
  [
    'the pool is ending the browser of a stopping session',
    { inCharge: ids(), ending: ids(), sessions: [stopping], workloads: [workload('busy')] },
    [],
  ],
  ['the log does not know the browser', { observed: there(true) }, ['stop-stray']],
  [
    'the browser of an active session is gone',
    { sessions: [active], workloads: [workload('busy')] },
    ['fail-session', 'report-gone'],
  ],
  [
    'a user closed the browser while no process was in charge',
    { observed: closed, sessions: [active], workloads: [workload('busy')] },
    ['confirm-closed', 'stop-stray', 'report-gone'],
  ],
  [
    'the closed browser belonged to a stopping session',
    { observed: closed, sessions: [stopping], workloads: [workload('busy')] },
    ['stop-stray', 'confirm-stopped', 'report-gone'],
  ],
  [
    'a browser of the pool is gone and its end was not observed',
    { inCharge: ids(), running: ids(), sessions: [active] },
    ['report-exit'],
  ],
  [
    'an idle browser of the pool has ended in the log',
    { observed: there(true), inCharge: ids(), running: ids(), idle: ids() },
    ['retire-ended'],
  ],
  [
    'an idle browser of the pool is idle in the log',
    {
      ...{ observed: there(true), workloads: [workload('idle')] },
      ...{ inCharge: ids(), running: ids(), idle: ids() },
    },
    [],
  ],
  ['an earlier process had accepted the session', { sessions: [accepted] }, ['take-again']],
  [
    'this process has accepted the session',
    { sessions: [accepted], taken: new Set(['ses_1']) },
    [],
  ],
];

test.each(table)('where %s', (_, observation, expected) => {
  const steps = planSteps({ ...nothing, ...observation });
  expect(steps.map((step) => step.do)).toEqual(expected);
});

test('a running browser to be stopped is a leaked browser, a session without its browser a leaked session', () => {
  const browsers = planSteps({ ...nothing, observed: there(true) });
  expect(leaksOf(browsers)).toEqual({ browsers: 1, sessions: 0 });
  const sessions = planSteps({ ...nothing, sessions: [active], workloads: [workload('busy')] });
  expect(leaksOf(sessions)).toEqual({ browsers: 0, sessions: 1 });
  expect(leaksOf([])).toEqual({ browsers: 0, sessions: 0 });
});

test('a session whose browser was closed stops at the time of the close, and its workload ends as closed', () => {
  const observation = { observed: closed, sessions: [active], workloads: [workload('busy')] };
  const steps = planSteps({ ...nothing, ...observation });
  expect(steps).toContainEqual({ do: 'confirm-closed', session: active, closedAt: T0 });
  expect(steps).toContainEqual({ do: 'report-gone', workloadId: 'wl_1', wasClosed: true });
  expect(leaksOf(steps)).toEqual({ browsers: 1, sessions: 1 });
});

function ids(): Set<string> {
  return new Set(['wl_1']);
}

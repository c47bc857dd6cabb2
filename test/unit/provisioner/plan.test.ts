import { expect, test } from 'vitest';
import type { SessionState } from '#events/session.ts';
import type { WorkloadState } from '#events/workload.ts';
import { leaksOf, nextSteps, type Comparison } from '#src/provisioner/reconcile/plan.ts';
import { foldAll, sessionRef } from '#test/support/given-when-then.ts';
import {
  activated,
  assigned,
  browser,
  requested,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

/** What one server's log and machine may disagree about, and what is done about it. */

const nothing: Comparison = {
  ...{ workloads: [], sessions: [], observed: [] },
  ...{ inCharge: new Set(), ending: new Set(), running: new Set(), taken: new Set() },
};
const running = activated(T0, browser('wl_1'));
const active = session(running);
const stopping = session(running, stopRequested());
const takenOn = session(assigned('wl_1'));

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
const wishes = { browser: { viewport: null, locale: 'fr-FR', timezone: null } };

const table: [string, Partial<Comparison>, string[]][] = [
  ['all is well', { inCharge: ids(), workloads: [workload('busy')], sessions: [active] }, []],
  ['a session goes on', { observed: there(true), sessions: [active] }, ['adopt']],
  ['a browser waits', { observed: there(true), workloads: [workload('idle')] }, ['adopt']],
  [
    'it was launched for somebody',
    { observed: there(true), workloads: [workload('idle', wishes)] },
    ['stop-stray', 'report-gone'],
  ],
  [
    'it was being launched',
    { observed: there(true), workloads: [workload('launching')] },
    ['stop-stray', 'report-gone'],
  ],
  [
    'it was given away, but nobody has it',
    { observed: there(true), workloads: [workload('busy')] },
    ['stop-stray', 'report-gone'],
  ],
  [
    'it cannot be taken over',
    { observed: there(false), sessions: [active], workloads: [workload('busy')] },
    ['stop-stray', 'fail-session', 'report-gone'],
  ],
  [
    'it is to be stopped',
    { observed: there(true), sessions: [stopping], workloads: [workload('busy')] },
    ['stop-stray', 'confirm-stopped', 'report-gone'],
  ],
  ['a stop was missed', { inCharge: ids(), sessions: [stopping] }, ['end-workload']],
  [
    'a stop is being carried out',
    { inCharge: ids(), ending: ids(), sessions: [stopping], workloads: [workload('busy')] },
    [],
  ],
  ['nobody knows it', { observed: there(true) }, ['stop-stray']],
  [
    'it is gone',
    { sessions: [active], workloads: [workload('busy')] },
    ['fail-session', 'report-gone'],
  ],
  [
    'its user closed it while nobody was in charge',
    { observed: closed, sessions: [active], workloads: [workload('busy')] },
    ['confirm-closed', 'stop-stray', 'report-gone'],
  ],
  [
    'it was closed, and its session was to be stopped',
    { observed: closed, sessions: [stopping], workloads: [workload('busy')] },
    ['stop-stray', 'confirm-stopped', 'report-gone'],
  ],
  [
    'its end was not heard',
    { inCharge: ids(), running: ids(), sessions: [active] },
    ['report-exit'],
  ],
  ['somebody had taken it on', { sessions: [takenOn] }, ['take-again']],
  ['this process has taken it on', { sessions: [takenOn], taken: new Set(['ses_1']) }, []],
];

test.each(table)('where %s', (_, comparison, expected) => {
  const steps = nextSteps({ ...nothing, ...comparison });
  expect(steps.map((step) => step.do)).toEqual(expected);
});

test('what is to be adopted or ended runs without a reason, what lost its browser has none', () => {
  const browsers = nextSteps({ ...nothing, observed: there(true) });
  expect(leaksOf(browsers)).toEqual({ browsers: 1, sessions: 0 });
  const sessions = nextSteps({ ...nothing, sessions: [active], workloads: [workload('busy')] });
  expect(leaksOf(sessions)).toEqual({ browsers: 0, sessions: 1 });
  expect(leaksOf([])).toEqual({ browsers: 0, sessions: 0 });
});

test('a session whose browser was closed is stopped as of the close, and its browser is told closed', () => {
  const comparison = { observed: closed, sessions: [active], workloads: [workload('busy')] };
  const steps = nextSteps({ ...nothing, ...comparison });
  expect(steps).toContainEqual({ do: 'confirm-closed', session: active, closedAt: T0 });
  expect(steps).toContainEqual({ do: 'report-gone', workloadId: 'wl_1', wasClosed: true });
  expect(leaksOf(steps)).toEqual({ browsers: 1, sessions: 1 });
});

function ids(): Set<string> {
  return new Set(['wl_1']);
}

import type { SessionState } from '#events/session.ts';
import type { WorkloadState } from '#events/workload.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';

/** What one server should have according to the log, and what it has. */
export type Observation = {
  /** Workloads of this server that are not terminated in the log. */
  workloads: readonly WorkloadState[];
  /** Sessions that are assigned to this server or run on it and have not ended. */
  sessions: readonly SessionState[];
  /** The browsers that exist on this server, of this process and of earlier ones. */
  observed: readonly {
    workloadId: string;
    isAdoptable: boolean;
    /** Set where its user has closed it; milliseconds since the epoch. */
    closedAt?: number;
  }[];
  /**
   * Workload ids that were in the pool at any moment of the observation: launching, idle, busy or
   * ending.
   */
  inCharge: ReadonlySet<string>;
  /** Those of `inCharge` that were ending at any moment of the observation. */
  ending: ReadonlySet<string>;
  /** Those of `inCharge` that were idle or busy during the whole observation. */
  running: ReadonlySet<string>;
  /** Those of `inCharge` that were idle at the beginning and at the end of the observation. */
  idle: ReadonlySet<string>;
  /** Ids of the sessions that waited in the pool, or had a browser of it, at any moment. */
  taken: ReadonlySet<string>;
};

export type Step =
  /** A browser of an earlier process that has a session or is idle: this process adopts it. */
  | { do: 'adopt'; workloadId: string; session: SessionState | null }
  /** A browser that runs without a session and outside of the pool. */
  | { do: 'stop-stray'; workloadId: string }
  /** A browser of the pool that is gone: its end was not observed. */
  | { do: 'report-exit'; workloadId: string }
  /** A workload in the log whose browser is gone. */
  | { do: 'report-gone'; workloadId: string; wasClosed: boolean }
  /** An active session whose browser is gone. */
  | { do: 'fail-session'; session: SessionState }
  /** An active session whose user closed the browser while no process was in charge of it. */
  | { do: 'confirm-closed'; session: SessionState; closedAt: number }
  /** A stopping session whose browser is gone. */
  | { do: 'confirm-stopped'; session: SessionState }
  /** A session that an earlier process of this server accepted and that still waits. */
  | { do: 'take-again'; session: SessionState }
  /** A browser of the pool whose session is stopping: that event was missed. */
  | { do: 'end-workload'; workloadId: string }
  /**
   * An idle browser of the pool that has ended in the log: another server began to declare this one
   * lost and did not finish, so this one does not learn of it otherwise.
   */
  | { do: 'retire-ended'; workloadId: string };

/**
 * Plans the steps from the observed to the desired state. Pure. The read model may lag: each step
 * is decided again on the log's current state, so a superfluous step does nothing. Strays are
 * stopped before their sessions are reported, except closed browsers: only their remains show the
 * close.
 */
export function planSteps(observation: Observation): Step[] {
  const { workloads, sessions, observed, inCharge, running, idle } = observation;
  const present = new Set(observed.map(({ workloadId }) => workloadId));
  const found = observed
    .filter(({ workloadId }) => !inCharge.has(workloadId))
    .map((one) => adoptionOf(one, observation) ?? strayOf(one));
  const adopted = new Set(found.flatMap((step) => (step.do === 'adopt' ? step.workloadId : [])));
  const isKept = (id: string) => inCharge.has(id) || adopted.has(id);
  const lost = [...running].filter((id) => !present.has(id));
  const gone = workloads.filter(({ id }) => !isKept(id));
  const known = new Set(workloads.map(({ id }) => id));
  const ended = [...idle].filter((id) => present.has(id) && !known.has(id));
  const ofSessions = sessions.flatMap((session) => stepFor(session, observation, isKept));
  const isClosed = (step: Step) => step.do === 'confirm-closed';
  return [
    ...ofSessions.filter(isClosed),
    ...found,
    ...lost.map((workloadId): Step => ({ do: 'report-exit', workloadId })),
    ...ended.map((workloadId): Step => ({ do: 'retire-ended', workloadId })),
    ...ofSessions.filter((step) => !isClosed(step)),
    ...gone.map(({ id }): Step => {
      return { do: 'report-gone', workloadId: id, wasClosed: closedAtOf(id, observation) !== null };
    }),
  ];
}

function closedAtOf(workloadId: string, { observed }: Observation): number | null {
  return observed.find((one) => one.workloadId === workloadId)?.closedAt ?? null;
}

function strayOf({ workloadId }: { workloadId: string }): Step {
  return { do: 'stop-stray', workloadId };
}

/**
 * Adopts a browser for the session on it, or as an idle one. That of a stopping session ends as any
 * other then, with its profile saved. Browsers that were launching, had special options, or were
 * assigned without an `activated` event are not adopted: their state is uncertain.
 */
function adoptionOf(
  { workloadId, isAdoptable }: Observation['observed'][number],
  { sessions, workloads }: Observation,
): Step | null {
  if (!isAdoptable) return null;
  const session = sessions.find(({ workload }) => workload?.workloadId === workloadId);
  if (session !== undefined)
    return isFinal(session.status) ? null : { do: 'adopt', workloadId, session };
  const known = workloads.find(({ id }) => id === workloadId);
  const isWaiting = known?.status === 'idle' && known.browser === undefined;
  return isWaiting ? { do: 'adopt', workloadId, session: null } : null;
}

function stepFor(
  session: SessionState,
  observation: Observation,
  isKept: (workloadId: string) => boolean,
): Step[] {
  const { inCharge, ending, taken } = observation;
  if (isFinal(session.status)) return [];
  const { workload } = session;
  if (workload === null) return taken.has(session.id) ? [] : [{ do: 'take-again', session }];
  const { workloadId } = workload;
  if (ending.has(workloadId)) return [];
  const isStopping = session.status === 'stopping';
  if (isStopping && inCharge.has(workloadId)) return [{ do: 'end-workload', workloadId }];
  if (isKept(workloadId)) return [];
  if (isStopping) return [{ do: 'confirm-stopped', session }];
  const closedAt = closedAtOf(workloadId, observation);
  return [
    closedAt === null
      ? { do: 'fail-session', session }
      : { do: 'confirm-closed', session, closedAt },
  ];
}

/** Identifies the difference that a step is for, the same in each observation. */
export function differenceOf(step: Step): string {
  return `${step.do} ${'workloadId' in step ? step.workloadId : step.session.id}`;
}

/** Counts browsers without a reason to run and sessions without a browser; both are to be 0. */
export function leaksOf(steps: readonly Step[]): { browsers: number; sessions: number } {
  const count = (...kinds: Step['do'][]) => steps.filter((step) => kinds.includes(step.do)).length;
  return {
    browsers: count('stop-stray', 'adopt', 'retire-ended'),
    sessions: count(
      'fail-session',
      'confirm-stopped',
      'confirm-closed',
      'take-again',
      'report-exit',
    ),
  };
}

import type { SessionState } from '#events/session.ts';
import type { WorkloadState } from '#events/workload.ts';
import { isFinal } from '#src/domain/session/session.ts';

/** What one server should have, by the log, and what it has. */
export type Comparison = {
  /** Browsers of this server that the log does not know to be gone. */
  workloads: readonly WorkloadState[];
  /** Sessions that are assigned to this server or run on it, and have not ended. */
  sessions: readonly SessionState[];
  /** What really runs here, whoever started it. */
  observed: readonly {
    workloadId: string;
    isAdoptable: boolean;
    /** Set where it has ended, and its user closed it; milliseconds since the epoch. */
    closedAt?: number;
  }[];
  /**
   * Ids of the browsers that this process was in charge of at any moment of the look: launching,
   * idle, serving or ending.
   */
  inCharge: ReadonlySet<string>;
  /** Those of them that it was ending at any moment of the look. */
  ending: ReadonlySet<string>;
  /** Those of them that were idle or served from the look's beginning to its end. */
  running: ReadonlySet<string>;
  /** Ids of the sessions that waited here for a browser, or had one, at any moment of the look. */
  taken: ReadonlySet<string>;
};

export type Step =
  /** It runs for a session, or waits, since before this process: it goes on under this one. */
  | { do: 'adopt'; workloadId: string; session: SessionState | null }
  /** It runs, nobody is in charge of it, and it is nobody's. */
  | { do: 'stop-stray'; workloadId: string }
  /** This process is in charge of it, and it is not there: its end was not heard. */
  | { do: 'report-exit'; workloadId: string }
  /** The log has a browser that is not there. */
  | { do: 'report-gone'; workloadId: string; wasClosed: boolean }
  /** The log has a session on a browser that is not there. */
  | { do: 'fail-session'; session: SessionState }
  /** Its user closed its browser while nobody was in charge of it. */
  | { do: 'confirm-closed'; session: SessionState; closedAt: number }
  /** Its browser is gone and its stop was asked for. */
  | { do: 'confirm-stopped'; session: SessionState }
  /** It was assigned to this server by a process that is no more, and still waits. */
  | { do: 'take-again'; session: SessionState }
  /** This process serves it, but its stop was asked for: that event was missed. */
  | { do: 'end-workload'; workloadId: string };

/**
 * (desired, observed) → what brings them together. Pure. The log's side may be some moments old:
 * each step decides again against the log as it then stands, so a step too many finds nothing to
 * do. Strays are ended before their sessions are told of, but for those that were closed: what is
 * left of them alone says so.
 */
export function nextSteps(comparison: Comparison): Step[] {
  const { workloads, sessions, observed, inCharge, running } = comparison;
  const present = new Set(observed.map(({ workloadId }) => workloadId));
  const found = observed
    .filter(({ workloadId }) => !inCharge.has(workloadId))
    .map((one) => adoption(one, comparison) ?? strayOf(one));
  const adopted = new Set(found.flatMap((step) => (step.do === 'adopt' ? step.workloadId : [])));
  const isKept = (id: string) => inCharge.has(id) || adopted.has(id);
  const lost = [...running].filter((id) => !present.has(id));
  const gone = workloads.filter(({ id }) => !isKept(id));
  const ofSessions = sessions.flatMap((session) => stepFor(session, comparison, isKept));
  const isClosed = (step: Step) => step.do === 'confirm-closed';
  return [
    ...ofSessions.filter(isClosed),
    ...found,
    ...lost.map((workloadId): Step => ({ do: 'report-exit', workloadId })),
    ...ofSessions.filter((step) => !isClosed(step)),
    ...gone.map(({ id }): Step => {
      return { do: 'report-gone', workloadId: id, wasClosed: closedAtOf(id, comparison) !== null };
    }),
  ];
}

function closedAtOf(workloadId: string, { observed }: Comparison): number | null {
  return observed.find((one) => one.workloadId === workloadId)?.closedAt ?? null;
}

function strayOf({ workloadId }: { workloadId: string }): Step {
  return { do: 'stop-stray', workloadId };
}

/**
 * A browser is taken over for the session that runs on it, or to wait as it waited. One that was
 * still being launched, or launched for somebody's wishes, or given away without the session's
 * knowing, is not worth the doubt.
 */
function adoption(
  { workloadId, isAdoptable }: Comparison['observed'][number],
  { sessions, workloads }: Comparison,
): Step | null {
  if (!isAdoptable) return null;
  const session = sessions.find(({ workload }) => workload?.workloadId === workloadId);
  if (session !== undefined)
    return session.status === 'active' ? { do: 'adopt', workloadId, session } : null;
  const known = workloads.find(({ id }) => id === workloadId);
  const isWaiting = known?.status === 'idle' && known.browser === undefined;
  return isWaiting ? { do: 'adopt', workloadId, session: null } : null;
}

function stepFor(
  session: SessionState,
  comparison: Comparison,
  isKept: (workloadId: string) => boolean,
): Step[] {
  const { inCharge, ending, taken } = comparison;
  if (isFinal(session.status)) return [];
  const { workload } = session;
  if (workload === null) return taken.has(session.id) ? [] : [{ do: 'take-again', session }];
  const { workloadId } = workload;
  if (ending.has(workloadId)) return [];
  if (session.status === 'stopping')
    return inCharge.has(workloadId)
      ? [{ do: 'end-workload', workloadId }]
      : [{ do: 'confirm-stopped', session }];
  if (isKept(workloadId)) return [];
  const closedAt = closedAtOf(workloadId, comparison);
  return [
    closedAt === null
      ? { do: 'fail-session', session }
      : { do: 'confirm-closed', session, closedAt },
  ];
}

/** Which difference a step is for: the same in each look that finds it. */
export function differenceOf(step: Step): string {
  return `${step.do} ${'workloadId' in step ? step.workloadId : step.session.id}`;
}

/** What is amiss by the log and by what runs: both numbers are to be 0. */
export function leaksOf(steps: readonly Step[]): { browsers: number; sessions: number } {
  const count = (...kinds: Step['do'][]) => steps.filter((step) => kinds.includes(step.do)).length;
  return {
    browsers: count('stop-stray', 'adopt'),
    sessions: count(
      'fail-session',
      'confirm-stopped',
      'confirm-closed',
      'take-again',
      'report-exit',
    ),
  };
}

import type { SessionState } from '#events/session.ts';
import type { WorkloadState } from '#events/workload.ts';
import { idOf } from '#projections/projection.ts';
import { readList } from '#projections/store/queries.ts';
import { sessionsOnServer, sessionView } from '#projections/session-view.ts';
import type { Views } from '#projections/store/views.ts';
import { workloads, workloadsOnServer } from '#projections/workloads.ts';
import type { Desk } from '#src/commands/handle-command.ts';
import type { Comparison } from './plan.ts';
import type { Pool } from '../pool/pool.ts';

/** The longest wait for the read model to hold all that the log had when it was asked. */
const CURRENT_WITHIN_MS = 30_000;

type Parts = { desk: Desk; views: Views; pool: Pool };

/**
 * What there should be and what there is. Both sides move meanwhile, so what this process had in
 * hand at any moment of the look is noted with it: that is under way, and no difference.
 */
export async function compare({ desk, views, pool }: Parts): Promise<Comparison> {
  const { server, browsers } = pool;
  using noted = noteInHand(pool);
  const runningBefore = runningOf(pool);
  const [sessions, fleet] = await Promise.all([
    readCurrent<SessionState>(desk, views, sessionView, sessionsOnServer(server.id)),
    readCurrent<WorkloadState>(desk, views, workloads, workloadsOnServer(server.id)),
  ]);
  const observed = await browsers.list();
  const runningAfter = runningOf(pool);
  return {
    sessions,
    workloads: fleet,
    observed: observed.map(({ workloadId, adoptable, closedAt }) => {
      const close = closedAt === undefined ? {} : { closedAt };
      return { workloadId, isAdoptable: adoptable !== null, ...close };
    }),
    ...noted.inHand,
    running: new Set([...runningBefore].filter((id) => runningAfter.has(id))),
  };
}

/** Notes the browsers and sessions that the pool has in hand, now and after each change. */
function noteInHand(pool: Pool) {
  const { roster, waiting } = pool;
  const inHand = {
    inCharge: new Set<string>(),
    ending: new Set<string>(),
    taken: new Set<string>(),
  };
  function note(): void {
    for (const { workloadId, phase, session } of roster.all()) {
      inHand.inCharge.add(workloadId);
      if (phase === 'ending') inHand.ending.add(workloadId);
      if (session !== null) inHand.taken.add(session.id);
    }
    for (const { identity } of waiting) inHand.taken.add(identity.id);
  }
  note();
  return { inHand, [Symbol.dispose]: pool.onChange(note) };
}

function runningOf({ roster }: Pool): Set<string> {
  const running = roster.all().filter(({ phase }) => phase === 'idle' || phase === 'busy');
  return new Set(running.map(({ workloadId }) => workloadId));
}

async function readCurrent<View>(
  desk: Desk,
  views: Views,
  projection: { name: string; version: number; subjects: readonly string[] },
  list: string,
): Promise<View[]> {
  const upTo = await desk.log.lastSequence(projection.subjects);
  if (!(await views.reached(idOf(projection), upTo, CURRENT_WITHIN_MS)))
    throw new Error(`${idOf(projection)} does not hold event ${upTo} yet`);
  return readList<View>(views, idOf(projection), list);
}

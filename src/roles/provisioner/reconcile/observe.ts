import type { SessionState } from '#events/session.ts';
import type { WorkloadState } from '#events/workload.ts';
import { projectionId } from '#projections/projection.ts';
import { readList } from '#projections/store/queries.ts';
import { sessionsOnServer, sessionView } from '#projections/session-view.ts';
import type { Views } from '#projections/store/views.ts';
import { workloads, workloadsOnServer } from '#projections/workloads.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import type { Observation } from './plan.ts';
import type { Pool } from '../pool/pool.ts';

/** The longest wait for the read model to catch up with the log. */
const CURRENT_WITHIN_MS = 30_000;

type ObserveDependencies = { context: CommandContext; views: Views; pool: Pool };

/**
 * Observes what the log says this server should have and what runs on it. Both change meanwhile, so
 * the browsers and sessions that this process handled at any moment of the observation are part of
 * it: work under way is no difference.
 */
export async function observe({ context, views, pool }: ObserveDependencies): Promise<Observation> {
  const { server, browsers } = pool;
  using tracked = trackInHand(pool);
  const runningBefore = runningOf(pool);
  const idleBefore = idleOf(pool);
  const [sessions, fleet] = await Promise.all([
    readCurrent<SessionState>(context, views, sessionView, sessionsOnServer(server.id)),
    readCurrent<WorkloadState>(context, views, workloads, workloadsOnServer(server.id)),
  ]);
  const observed = await browsers.list();
  const runningAfter = runningOf(pool);
  const idleAfter = idleOf(pool);
  return {
    sessions,
    workloads: fleet,
    observed: observed.map(({ workloadId, adoptable, closedAt }) => {
      const close = closedAt === undefined ? {} : { closedAt };
      return { workloadId, isAdoptable: adoptable !== null, ...close };
    }),
    ...tracked.inHand,
    running: new Set([...runningBefore].filter((id) => runningAfter.has(id))),
    idle: new Set([...idleBefore].filter((id) => idleAfter.has(id))),
  };
}

/** Collects the browsers and sessions that the pool handles, now and after each change. */
function trackInHand(pool: Pool) {
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

function idleOf({ roster }: Pool): Set<string> {
  const idle = roster.all().filter(({ phase }) => phase === 'idle');
  return new Set(idle.map(({ workloadId }) => workloadId));
}

async function readCurrent<View>(
  context: CommandContext,
  views: Views,
  projection: { name: string; version: number; subjects: readonly string[] },
  list: string,
): Promise<View[]> {
  const upTo = await context.eventStore.lastSequence();
  if (!(await views.waitForCheckpoint(projectionId(projection), upTo, CURRENT_WITHIN_MS)))
    throw new Error(`${projectionId(projection)} has not caught up with event ${upTo}`);
  return readList<View>(views, projectionId(projection), list);
}

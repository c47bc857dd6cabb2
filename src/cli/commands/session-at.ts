import { STATE_UNKNOWN } from '#events/codec.ts';
import { isOf, type RecordedEvent, type RecordedOf } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import { filterOf, sessionAnywhere } from '#events/subjects.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { evolve } from '#src/domain/session/session.ts';
import { readEvents } from '../read-events.ts';

/** One event of a session, and the state it left. */
export type Step = { event: RecordedOf<'session'>; state: SessionState };

/** The session's life, whosever it is; empty where there is none of that id. */
export async function readSteps(
  log: EventLog,
  id: string,
  warn: (text: string) => void,
): Promise<Step[]> {
  const steps: Step[] = [];
  for await (const event of readEvents(log, [sessionAnywhere(id)], warn)) {
    if (!isOf('session', event)) continue;
    const isKnown = (event.state as unknown) !== STATE_UNKNOWN;
    const before = steps.at(-1)?.state ?? null;
    steps.push({ event, state: isKnown ? event.state : evolve(before, event, event.aggregate) });
  }
  return steps;
}

/** The browsers that a session had or was promised, and their servers. */
export function fleetOf(steps: readonly Step[]): { workloads: string[]; servers: string[] } {
  const places = steps.flatMap(({ state }) =>
    [state.workload ?? [], state.assignment ?? []].flat(),
  );
  return {
    workloads: filtersOf(
      'workload',
      places.map(({ workloadId }) => workloadId),
    ),
    servers: filtersOf(
      'server',
      places.map(({ serverId }) => serverId),
    ),
  };
}

function filtersOf(kind: 'workload' | 'server', ids: readonly string[]): string[] {
  return [...new Set(ids)].map((id) => filterOf({ kind, id }));
}

/**
 * The events that led to those of the session, by their ids: its own, and where they do not tell
 * all, those of its browsers and of their servers. What else there may be is left unnamed.
 */
export async function findCauses(
  log: EventLog,
  steps: readonly Step[],
  warn: (text: string) => void,
): Promise<ReadonlyMap<string, RecordedEvent>> {
  const found = new Map<string, RecordedEvent>(steps.map(({ event }) => [event.id, event]));
  const isFound = ({ event: { cause } }: Step) =>
    cause.causationId === null || found.has(cause.causationId);
  if (steps.every(isFound)) return found;
  const { workloads, servers } = fleetOf(steps);
  const fleet = [...workloads, ...servers];
  if (fleet.length > 0)
    for await (const event of readEvents(log, fleet, warn)) found.set(event.id, event);
  return found;
}

/** A step for programs. */
export function presentStep({ event, state }: Step) {
  const { sequence, type, time, data } = event;
  const { actor, commandId, correlationId, causationId } = event.cause;
  const cause = { commandId, correlationId, causationId };
  return { sequence, type, time, actor, cause, data, state };
}

import { isOf, type RecordedEvent, type RecordedOf } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import { sessionAnywhere, streamFilter } from '#events/subjects.ts';
import { evolve } from '#src/kernel/domain/session/session.ts';
import { reject } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { sequenceAt } from '#src/kernel/event-store/load-state.ts';
import { fleetIn } from '#src/kernel/history/fleet.ts';
import { parseId, parseTime, integer } from '../arguments.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../errors.ts';
import { formatTable } from '../output.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';

export const showSessionAt: Command = {
  read(options) {
    const id = options.operand(0, parseId);
    const time = options.optional('time', parseTime);
    const sequence = options.optional('seq', integer(1, Number.MAX_SAFE_INTEGER));
    if ((time === null) === (sequence === null))
      throw new UsageError('either --time or --seq is needed');
    return async ({ context, warn }) => {
      if (time !== null && time > context.now())
        return notReachedYet({ time: new Date(time).toISOString() });
      const upTo = sequence ?? (await sequenceAt(context, time ?? 0));
      if (upTo > (await context.eventStore.lastSequence()))
        return notReachedYet({ sequence: upTo });
      return showAt(id, upTo, await readSteps(context.eventStore, id, warn));
    };
  },
};

function notReachedYet(context: Record<string, unknown>) {
  return reject('INVALID_REQUEST', context, { message: 'That is in the future.' });
}

function showAt(id: string, upTo: number, steps: readonly Step[]) {
  const step = steps.findLast(({ event }) => event.sequence <= upTo);
  const [first] = steps;
  if (step === undefined && first !== undefined)
    return reject(
      'SESSION_NOT_FOUND',
      { session_id: id },
      {
        message: `It began later, with event ${first.event.sequence} at ${first.event.time}.`,
      },
    );
  if (step === undefined) return reject('SESSION_NOT_FOUND', { session_id: id });
  const { event, state } = step;
  const fields = Object.entries(state).map(([field, value]) => [field, JSON.stringify(value)]);
  const rows = [['LAST EVENT', `${event.type} (${event.sequence}) at ${event.time}`], ...fields];
  return { json: presentStep(step), text: formatTable(['AS OF', String(upTo)], rows).join('\n') };
}

/** One event of a session, and the state after it. */
export type Step = { event: RecordedOf<'session'>; state: SessionState };

/** All events of the session, of whichever organization; empty if there is no such session. */
export async function readSteps(
  eventStore: EventStore,
  id: string,
  warn: (text: string) => void,
): Promise<Step[]> {
  const steps: Step[] = [];
  for await (const event of readEvents(eventStore, [sessionAnywhere(id)], warn)) {
    if (!isOf('session', event)) continue;
    const before = steps.at(-1)?.state ?? null;
    steps.push({ event, state: event.state ?? evolve(before, event, event.aggregate) });
  }
  return steps;
}

/** Subject filters of the browsers that were assigned to a session, and of their servers. */
export function fleetOf(steps: readonly Step[]): { workloads: string[]; servers: string[] } {
  const { workloadIds, serverIds } = fleetIn(steps.map(({ state }) => state));
  return {
    workloads: workloadIds.map((id) => streamFilter({ kind: 'workload', id })),
    servers: serverIds.map((id) => streamFilter({ kind: 'server', id })),
  };
}

/**
 * Events by their ids, to look up what caused the session's events: the session's own, and those of
 * its browsers and servers if a cause is not among its own. Other causes stay unresolved.
 */
export async function findCauses(
  eventStore: EventStore,
  steps: readonly Step[],
  warn: (text: string) => void,
): Promise<ReadonlyMap<string, RecordedEvent>> {
  const found = new Map<string, RecordedEvent>(steps.map(({ event }) => [event.id, event]));
  const isFound = ({ event: { metadata } }: Step) =>
    metadata.causationId === null || found.has(metadata.causationId);
  if (steps.every(isFound)) return found;
  const { workloads, servers } = fleetOf(steps);
  const fleet = [...workloads, ...servers];
  if (fleet.length > 0)
    for await (const event of readEvents(eventStore, fleet, warn)) found.set(event.id, event);
  return found;
}

/** A step as JSON. */
export function presentStep({ event, state }: Step) {
  const { sequence, type, time, data } = event;
  const { actor, commandId, correlationId, causationId } = event.metadata;
  const cause = { commandId, correlationId, causationId };
  return { sequence, type, time, actor, cause, data, state };
}

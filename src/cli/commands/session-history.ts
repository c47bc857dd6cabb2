import type { RecordedEvent } from '#events/events.ts';
import { sessionAnywhere } from '#events/subjects.ts';
import { reject } from '#src/errors.ts';
import { isFinal } from '#src/domain/session/session.ts';
import { changesBetween, fieldChanges } from '../changes.ts';
import type { Command } from '../command.ts';
import { asId } from '../arguments.ts';
import { elapsed, layOut, lengthOf, printable } from '../output.ts';
import { findCauses, presentStep, readSteps, type Step } from './session-at.ts';

type Causes = ReadonlyMap<string, RecordedEvent>;

export const showHistory: Command = {
  name: 'session history',
  summary: 'Show all that happened to a session, by whom and why',
  operands: ['SESSION-ID'],
  options: {},
  read(given) {
    const id = given.operand(0, asId);
    return async ({ desk, warn }) => {
      const steps = await readSteps(desk.log, id, warn);
      // What cannot be read is told of, and is not nothing.
      const isThere = steps.length > 0 || (await desk.log.lastSequence([sessionAnywhere(id)])) > 0;
      if (!isThere) return reject('SESSION_NOT_FOUND', { session_id: id });
      const causes = await findCauses(desk.log, steps, warn);
      const text = [...describe(steps, causes), '', `in all ${timesIn(steps, desk.now())}`];
      return {
        json: steps.map((step, at) => present(step, steps[at - 1], causes)),
        text: text.join('\n'),
      };
    };
  },
};

function present(step: Step, before: Step | undefined, causes: Causes) {
  const { causationId } = step.event.cause;
  const cause = causationId === null ? undefined : causes.get(causationId);
  return {
    ...presentStep(step),
    sincePreviousMs: before === undefined ? null : msBetween(before.event, step.event),
    changes: fieldChanges(before?.state ?? {}, step.state),
    causedBy: cause === undefined ? null : { sequence: cause.sequence, type: cause.type },
  };
}

/** A row an event, and below it what it changed. */
function describe(steps: readonly Step[], causes: Causes): readonly string[] {
  const rows = steps.map(({ event, state }, index) => {
    const { sequence, time, type, cause } = event;
    const before = steps[index - 1]?.event.time;
    const since = before === undefined ? '' : elapsed(before, time);
    const actor = `${cause.actor.kind}:${cause.actor.id}`;
    return [String(sequence), time, since, type, state.status, actor, because(event, causes)];
  });
  const heads = ['SEQ', 'TIME', 'SINCE', 'EVENT', 'STATE AFTER', 'BY', 'BECAUSE OF'];
  const [head = '', ...lines] = layOut(heads, rows);
  return [
    head,
    ...lines.flatMap((line, index) => {
      const before = steps[index - 1]?.state ?? {};
      const changes = changesBetween(before, steps[index]?.state ?? {});
      return [line, ...changes.map((change) => `      ${printable(change)}`)];
    }),
  ];
}

function because(event: RecordedEvent, causes: Causes): string {
  const { causationId, commandId } = event.cause;
  if (causationId === null) return `command ${commandId}`;
  const cause = causes.get(causationId);
  return cause === undefined ? causationId : `${cause.type} (${cause.sequence})`;
}

/** How long it stood in each status: `creating 40ms, active 5m02s`; what goes on counts too. */
function timesIn(steps: readonly Step[], now: number): string {
  const times = new Map<string, number>();
  for (const [index, { event, state }] of steps.entries()) {
    if (isFinal(state.status)) break;
    const next = steps[index + 1]?.event.time;
    const until = next === undefined ? now : Date.parse(next);
    const ms = until - Date.parse(event.time);
    times.set(state.status, (times.get(state.status) ?? 0) + ms);
  }
  return [...times].map(([status, ms]) => `${status} ${lengthOf(ms)}`).join(', ');
}

function msBetween(before: RecordedEvent, after: RecordedEvent): number {
  return Date.parse(after.time) - Date.parse(before.time);
}

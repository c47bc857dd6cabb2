import type { RecordedEvent } from '#events/events.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { reject } from '#src/kernel/errors.ts';
import { describeActor } from '#src/kernel/history/describe-actor.ts';
import { fieldChanges } from '#src/kernel/history/field-changes.ts';
import { parseId } from '../arguments.ts';
import type { Command } from '../command.ts';
import { formatElapsed, formatTable, formatDuration, printable } from '../output.ts';
import { findCauses, presentStep, readSteps, type Step } from './session-at.ts';

type Causes = ReadonlyMap<string, RecordedEvent>;

export const showHistory: Command = {
  read(options) {
    const id = options.operand(0, parseId);
    return async ({ context, warn }) => {
      let unreadable = 0;
      const steps = await readSteps(context.eventStore, id, (text) => {
        unreadable += 1;
        warn(text);
      });
      // A session whose events cannot be read exists; the warnings name those events.
      if (steps.length + unreadable === 0) return reject('SESSION_NOT_FOUND', { session_id: id });
      const causes = await findCauses(context.eventStore, steps, warn);
      const text = [...describe(steps, causes), '', `in total ${timesIn(steps, context.now())}`];
      return {
        json: steps.map((step, at) => present(step, steps[at - 1], causes)),
        text: text.join('\n'),
      };
    };
  },
};

function present(step: Step, before: Step | undefined, causes: Causes) {
  const { causationId } = step.event.metadata;
  const cause = causationId === null ? undefined : causes.get(causationId);
  return {
    ...presentStep(step),
    sincePreviousMs: before === undefined ? null : msBetween(before.event, step.event),
    changes: fieldChanges(before?.state ?? {}, step.state),
    causedBy: cause === undefined ? null : { sequence: cause.sequence, type: cause.type },
  };
}

/** A row for each event; the changed fields follow it. */
function describe(steps: readonly Step[], causes: Causes): readonly string[] {
  const rows = steps.map(({ event, state }, index) => {
    const { sequence, time, type, metadata: cause } = event;
    const before = steps[index - 1]?.event.time;
    const since = before === undefined ? '' : formatElapsed(before, time);
    const actor = describeActor(cause.actor);
    return [String(sequence), time, since, type, state.status, actor, because(event, causes)];
  });
  const heads = ['SEQ', 'TIME', 'SINCE', 'EVENT', 'STATE AFTER', 'BY', 'BECAUSE OF'];
  const [head = '', ...lines] = formatTable(heads, rows);
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
  const { causationId, commandId } = event.metadata;
  if (causationId === null) return `command ${commandId}`;
  const cause = causes.get(causationId);
  return cause === undefined ? causationId : `${cause.type} (${cause.sequence})`;
}

/** Time spent in each status, up to now: `creating 40ms, active 5m02s`. */
function timesIn(steps: readonly Step[], now: number): string {
  const times = new Map<string, number>();
  for (const [index, { event, state }] of steps.entries()) {
    if (isFinal(state.status)) break;
    const next = steps[index + 1]?.event.time;
    const until = next === undefined ? now : Date.parse(next);
    const ms = until - Date.parse(event.time);
    times.set(state.status, (times.get(state.status) ?? 0) + ms);
  }
  return [...times].map(([status, ms]) => `${status} ${formatDuration(ms)}`).join(', ');
}

function msBetween(before: RecordedEvent, after: RecordedEvent): number {
  return Date.parse(after.time) - Date.parse(before.time);
}

/** One line for each changed field: `status: "creating" → "active"`. */
function changesBetween(before: object, after: object): string[] {
  return fieldChanges(before, after).map((change) => {
    const from = 'from' in change ? `${JSON.stringify(change.from)} → ` : '';
    return `${change.field}: ${from}${JSON.stringify(change.to)}`;
  });
}

import type { RecordedEvent } from '#events/events.ts';
import { reject } from '#src/errors.ts';
import { isFinal } from '#src/domain/session/session.ts';
import type { Command, Output } from '../../command.ts';
import { asId } from '../../arguments.ts';
import { elapsed, layOut, lengthOf, printable, printableLines } from '../../output.ts';
import { readSteps, type Step } from '../session-at.ts';
import { chainTo, type Link } from './chain.ts';
import { readRelated } from './related.ts';
import { inWords } from './describe-event.ts';

export const showWhy: Command = {
  name: 'why',
  summary: 'Tell in plain words how a session came to its end',
  operands: ['SESSION-ID'],
  options: {},
  read(given) {
    const id = given.operand(0, asId);
    return async ({ desk, warn }) => {
      const steps = await readSteps(desk.log, id, warn);
      const last = steps.findLast(({ event }) => !isUse(event)) ?? steps.at(-1);
      if (last === undefined) return reject('SESSION_NOT_FOUND', { session_id: id });
      const related = await readRelated(desk.log, steps, warn);
      return tell(steps, last, { chain: chainTo(last.event, related), related });
    };
  },
};

function tell(
  steps: readonly Step[],
  { state }: Step,
  { chain, related }: { chain: readonly Link[]; related: readonly RecordedEvent[] },
): Output {
  const lastUse = related.findLast(isUse);
  const timeline = related.filter((event) => !isUse(event) || event === lastUse);
  const summary = summaryOf(steps, state);
  const json = {
    session_id: state.id,
    organization_id: state.organizationId,
    status: state.status,
    ended_reason: state.endedReason,
    summary,
    chain: chain.map(({ words, event }) => ({ words, ...(event && presentEvent(event)) })),
    timeline: timeline.map((event) => ({ words: inWords(event), ...presentEvent(event) })),
  };
  const title = isFinal(state.status) ? 'How it came to its end' : 'How it came to be so';
  const text = [
    summary,
    '',
    `${title}, the last first:`,
    ...chain.flatMap((link, depth) => describeLink(link, depth === 0 ? '' : 'because ')),
    '',
    'All that belongs to it:',
    ...describeTimeline(timeline),
  ];
  return { json, text: text.map(printable).join('\n') };
}

function summaryOf(steps: readonly Step[], state: Step['state']): string {
  const { id, organizationId, status, endedReason, startedAt, createdAt, endedAt } = state;
  const who = `Session ${id} of organization ${organizationId}`;
  const events = `${steps.length} events`;
  if (endedAt === null) return `${who} has not ended: it is ${status} (${events}).`;
  const whole = lengthOf(Date.parse(endedAt) - Date.parse(createdAt));
  const active =
    startedAt === null
      ? 'and never had a browser'
      : `${lengthOf(Date.parse(endedAt) - Date.parse(startedAt))} of it with a browser`;
  return `${who} ${status} (${endedReason}) at ${endedAt}, after ${whole}, ${active} (${events}).`;
}

function describeLink({ words, event }: Link, because: string): readonly string[] {
  const { first, others } = printableLines(words);
  const source = event === null ? '' : ` — event ${event.sequence}, ${event.time}, by ${by(event)}`;
  return [`  ${because}${first}${source}`, ...others.map((line) => `      ${line}`)];
}

/** What one says on further lines stands below its row, for it may be as wide as it likes. */
function describeTimeline(events: readonly RecordedEvent[]): readonly string[] {
  const begin = events[0]?.time ?? '';
  const told = events.map((event) => ({ event, ...printableLines(inWords(event)) }));
  const rows = told.map(({ event, first }) => {
    return [String(event.sequence), elapsed(begin, event.time), first, by(event)];
  });
  const [heads = '', ...lines] = layOut(['SEQ', 'AT', 'WHAT', 'BY'], rows);
  const below = told.map(({ others }) => others.map((line) => `      ${line}`));
  return [heads, ...lines.flatMap((line, index) => [line, ...(below[index] ?? [])])];
}

function by({ cause: { actor } }: RecordedEvent): string {
  return `${actor.kind}:${actor.id}`;
}

function presentEvent({ sequence, type, time, cause }: RecordedEvent) {
  return { sequence, type, time, actor: cause.actor };
}

/** Every minute of use is an event; the last one says enough. */
function isUse({ type }: RecordedEvent): boolean {
  return type === 'session.accessed';
}

import type { RecordedEvent } from '#events/events.ts';
import { reject } from '#src/errors.ts';
import { isFinal } from '#src/domain/session/session.ts';
import type { Command, Output } from '../../command.ts';
import { parseId } from '../../arguments.ts';
import {
  formatElapsed,
  formatTable,
  formatDuration,
  printable,
  printableLines,
} from '../../output.ts';
import { readSteps, type Step } from '../session-at.ts';
import { causesOf, type Link } from './chain.ts';
import { readRelated } from './related.ts';
import { describeEvent } from './describe-event.ts';

export const showWhy: Command = {
  read(options) {
    const id = options.operand(0, parseId);
    return async ({ context, warn }) => {
      const steps = await readSteps(context.eventStore, id, warn);
      const last = steps.findLast(({ event }) => isChange(event)) ?? steps.at(-1);
      if (last === undefined) return reject('SESSION_NOT_FOUND', { session_id: id });
      const related = await readRelated(context.eventStore, steps, warn);
      return presentWhy(steps, last, { chain: causesOf(last.event, related), related });
    };
  },
};

function presentWhy(
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
    timeline: timeline.map((event) => ({ words: describeEvent(event), ...presentEvent(event) })),
  };
  const title = isFinal(state.status) ? 'Why it ended' : 'Why it is in this state';
  const text = [
    summary,
    '',
    `${title}, latest first:`,
    ...chain.flatMap((link, depth) => describeLink(link, depth === 0 ? '' : 'because ')),
    '',
    'All related events:',
    ...describeTimeline(timeline),
  ];
  return { json, text: text.map(printable).join('\n') };
}

function summaryOf(steps: readonly Step[], state: Step['state']): string {
  const { id, organizationId, status, endedReason, startedAt, createdAt, endedAt } = state;
  const who = `Session ${id} of organization ${organizationId}`;
  const events = `${steps.length} events`;
  if (endedAt === null) return `${who} has not ended: it is ${status} (${events}).`;
  const whole = formatDuration(Date.parse(endedAt) - Date.parse(createdAt));
  const active =
    startedAt === null
      ? 'and never had a browser'
      : `${formatDuration(Date.parse(endedAt) - Date.parse(startedAt))} of it with a browser`;
  return `${who} ${status} (${endedReason}) at ${endedAt}, after ${whole}, ${active} (${events}).`;
}

function describeLink({ words, event }: Link, because: string): readonly string[] {
  const { first, others } = printableLines(words);
  const source =
    event === null ? '' : ` — event ${event.sequence}, ${event.time}, by ${describeActor(event)}`;
  return [`  ${because}${first}${source}`, ...others.map((line) => `      ${line}`)];
}

/** A table; the further lines of a text follow its row, because they may be wider than a column. */
function describeTimeline(events: readonly RecordedEvent[]): readonly string[] {
  const begin = events[0]?.time ?? '';
  const described = events.map((event) => ({ event, ...printableLines(describeEvent(event)) }));
  const rows = described.map(({ event, first }) => {
    return [String(event.sequence), formatElapsed(begin, event.time), first, describeActor(event)];
  });
  const [heads = '', ...lines] = formatTable(['SEQ', 'AT', 'WHAT', 'BY'], rows);
  const below = described.map(({ others }) => others.map((line) => `      ${line}`));
  return [heads, ...lines.flatMap((line, index) => [line, ...(below[index] ?? [])])];
}

function describeActor({ metadata: { actor } }: RecordedEvent): string {
  return `${actor.kind}:${actor.id}`;
}

function presentEvent({ sequence, type, time, metadata }: RecordedEvent) {
  return { sequence, type, time, actor: metadata.actor };
}

/** Neither use nor a state that was carried forward explains where a session is. */
function isChange(event: RecordedEvent): boolean {
  return !isUse(event) && event.type !== 'session.carried-forward';
}

/** Every minute of use is an event; the output shows only the last. */
function isUse({ type }: RecordedEvent): boolean {
  return type === 'session.accessed';
}

import type { RecordedEvent } from '#events/events.ts';
import { sessionAnywhere } from '#events/subjects.ts';
import { reject } from '#src/kernel/errors.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { describeUnreadable } from '#src/kernel/event-store/read-events.ts';
import { causesOf, type Link } from '#src/kernel/history/chain.ts';
import { describeActor } from '#src/kernel/history/describe-actor.ts';
import { describeEvent } from '#src/kernel/history/describe-event.ts';
import { blackBoxIn } from '#src/kernel/history/describe-black-box.ts';
import { readRelated } from '#src/kernel/history/related.ts';
import { readStory, summaryOf, withoutUses, type Story } from '#src/kernel/history/story.ts';
import type { Command, Output } from '../command.ts';
import { parseId } from '../arguments.ts';
import { formatElapsed, formatTable, printable, printableLines } from '../output.ts';

export const showWhy: Command = {
  read(options) {
    const id = options.operand(0, parseId);
    return async ({ context, warn }) => {
      const { eventStore, now } = context;
      const onUnreadable: OnUnreadable = (poison) => warn(describeUnreadable(poison));
      const subjects = [sessionAnywhere(id)];
      const own = eventStore.read({ subjects, includesArchive: true, onUnreadable });
      const story = await readStory(own);
      if (story === null) return reject('SESSION_NOT_FOUND', { session_id: id });
      const related = await readRelated(eventStore, story, { now, onUnreadable });
      return presentWhy(story, { chain: causesOf(story.end, related), related });
    };
  },
};

type OnUnreadable = Parameters<typeof readRelated>[2]['onUnreadable'];

function presentWhy(
  story: Story,
  { chain, related }: { chain: readonly Link[]; related: readonly RecordedEvent[] },
): Output {
  const { state } = story;
  const timeline = withoutUses(related);
  const summary = summaryOf(story);
  const json = {
    session_id: state.id,
    organization_id: state.organizationId,
    status: state.status,
    ended_reason: state.endedReason,
    summary,
    black_box: blackBoxIn(story.events),
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

function describeLink({ words, event }: Link, because: string): readonly string[] {
  const { first, others } = printableLines(words);
  const source =
    event === null
      ? ''
      : ` — event ${event.sequence}, ${event.time}, by ${describeActor(event.metadata.actor)}`;
  return [`  ${because}${first}${source}`, ...others.map((line) => `      ${line}`)];
}

/** A table; the further lines of a text follow its row, because they may be wider than a column. */
function describeTimeline(events: readonly RecordedEvent[]): readonly string[] {
  const begin = events[0]?.time ?? '';
  const described = events.map((event) => ({ event, ...printableLines(describeEvent(event)) }));
  const rows = described.map(({ event, first }) => {
    return [
      String(event.sequence),
      formatElapsed(begin, event.time),
      first,
      describeActor(event.metadata.actor),
    ];
  });
  const [heads = '', ...lines] = formatTable(['SEQ', 'AT', 'WHAT', 'BY'], rows);
  const below = described.map(({ others }) => others.map((line) => `      ${line}`));
  return [heads, ...lines.flatMap((line, index) => [line, ...(below[index] ?? [])])];
}

function presentEvent({ sequence, type, time, metadata }: RecordedEvent) {
  return { sequence, type, time, actor: metadata.actor };
}

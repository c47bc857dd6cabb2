import { useState } from 'preact/hooks';
import { setMoment } from '../shell/moment.ts';
import { Table } from '../shell/table.tsx';
import { formatClock, formatSpan, formatTime } from '../shell/time.tsx';
import { toggled } from '../sessions/filters.ts';
import { describeDoor } from '#src/kernel/history/describe-actor.ts';
import { readable } from './sentence.ts';
import { KINDS, type Change, type Kind, type Line } from './history.ts';

export const anchorOf = (sequence: number) => `event-${sequence}`;

type TimelineProps = {
  lines: readonly Line[];
  /** The last event of the moment that the page shows; null: now. */
  last: number | null;
  /** The events whose details are open. */
  open: readonly number[];
  setOpen: (open: readonly number[]) => void;
};

/** All that happened, oldest first. A click on a line shows its payload and what it changed. */
export function Timeline({ lines, last, open, setOpen }: TimelineProps) {
  const [hidden, setHidden] = useState<readonly Kind[]>([]);
  const shown = lines.filter(({ kind }) => !hidden.includes(kind));
  return (
    <section aria-labelledby="timeline">
      <div class="title">
        <h2 id="timeline">Timeline</h2>
        <div class="chips" role="group" aria-label="Kinds of events">
          {KINDS.map((kind) => (
            <button
              key={kind}
              type="button"
              class="chip small"
              aria-pressed={!hidden.includes(kind)}
              onClick={() => setHidden(toggled(hidden, kind))}
            >
              {kind} {lines.filter((line) => line.kind === kind).length}
            </button>
          ))}
        </div>
      </div>
      <ol class="timeline card flush">
        {shown.map((line, index) => (
          <TimelineLine
            key={line.sequence}
            line={line}
            before={shown[index - 1]}
            isLater={last !== null && line.sequence > last}
            isCurrent={line.sequence === last}
            isOpen={open.includes(line.sequence)}
            toggle={() => setOpen(toggled(open, line.sequence))}
          />
        ))}
      </ol>
    </section>
  );
}

type LineProps = {
  line: Line;
  before: Line | undefined;
  isLater: boolean;
  isCurrent: boolean;
  isOpen: boolean;
  toggle: () => void;
};

function TimelineLine({ line, before, isLater, isCurrent, isOpen, toggle }: LineProps) {
  const { sequence, type, time, sentence, actor, kind, event } = line;
  const gap = before === undefined ? null : Date.parse(time) - Date.parse(before.time);
  const [, ...more] = sentence.split('\n');
  const mark = `${isLater ? 'later' : ''} ${isCurrent ? 'current' : ''}`;
  return (
    <li id={anchorOf(sequence)} class={mark} aria-current={isCurrent ? 'step' : undefined}>
      <button type="button" class="line" aria-expanded={isOpen} onClick={toggle}>
        <span class="when">
          <time dateTime={time} title={formatTime(time)}>
            {formatClock(time)}
          </time>
          <span class="muted">{gap === null ? '' : `+${formatSpan(Math.max(0, gap))}`}</span>
        </span>
        <span class={`dot ${kind.split(' ')[0]}`} aria-hidden="true" />
        <span class="what">
          {readable(sentence, formatTime)}
          <span class="muted">
            <code>{type}</code> by {actor.kind} {actor.id}
            {describeDoor(actor)}
          </span>
        </span>
      </button>
      {event?.because_of?.sequence !== null && event?.because_of?.sequence !== undefined && (
        <a class="cause" href={`#${anchorOf(event.because_of.sequence)}`}>
          because of {event.because_of.type}
        </a>
      )}
      {isOpen && <LineDetails line={line} more={more} />}
    </li>
  );
}

const CHANGES = [
  { name: 'Field', cell: ({ field }: Change) => <code>{field}</code> },
  { name: 'Before', cell: ({ from }: Change) => <code>{textOf(from)}</code> },
  { name: 'After', cell: ({ to }: Change) => <code>{textOf(to)}</code> },
];

function textOf(value: unknown): string {
  if (value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function LineDetails({ line: { sequence, event }, more }: { line: Line; more: string[] }) {
  return (
    <div class="details">
      {more.length > 0 && <pre tabIndex={0}>{more.join('\n')}</pre>}
      {event === null ? (
        <p class="muted">
          Event {sequence} is not the session’s own: it has no payload for the organization.
        </p>
      ) : (
        <>
          {event.changes.length > 0 && (
            <Table
              label={`What event ${sequence} changed`}
              columns={CHANGES}
              rows={event.changes}
              keyOf={({ field }) => field}
            />
          )}
          <h3>Payload</h3>
          <pre tabIndex={0} aria-label="Payload">
            {JSON.stringify(event.data, null, 2)}
          </pre>
          <p class="muted small">
            Event {sequence}, <code>{event.id}</code>
          </p>
          <button type="button" onClick={() => setMoment({ sequence })}>
            Show the session after this event
          </button>
        </>
      )}
    </div>
  );
}

import { caller } from '../api/caller.ts';
import { useResource } from '../api/use-resource.ts';
import { describeDoor } from '#src/kernel/history/describe-actor.ts';
import { readable } from '../session/sentence.ts';
import { Link } from '../shell/link.tsx';
import { moment } from '../shell/moment.ts';
import { query, sessionPath, setQuery } from '../shell/router.ts';
import { Empty, Failure, Loading } from '../shell/states.tsx';
import { Table, type Column } from '../shell/table.tsx';
import { formatTime, Time } from '../shell/time.tsx';
import type { OperatorEvent, OperatorEvents } from './answers.ts';
import { eventsAddress, eventsPath, KINDS, withParameter } from './events-address.ts';
import { numberOf } from './words.ts';

const EVERY_MS = 5_000;

const COLUMNS: readonly Column<OperatorEvent>[] = [
  { name: 'Time', cell: ({ time }) => <Time at={time} /> },
  {
    name: 'What happened',
    cell: ({ sentence, type }) => (
      <span class="stacked">
        {readable(sentence === type ? type.replaceAll(/[.-]/g, ' ') : sentence, formatTime)}
        <code class="muted small">{type}</code>
      </span>
    ),
  },
  { name: 'Of', cell: (event) => <Aggregate of={event} /> },
  {
    name: 'By',
    cell: ({ actor }) => (
      <>
        {actor.kind} {actor.id}
        {describeDoor(actor)}
      </>
    ),
  },
  {
    name: 'Event',
    cell: ({ sequence }) => (
      <Link to={eventsAddress({ at: `${sequence}` })}>{numberOf(sequence)}</Link>
    ),
    isNumber: true,
  },
];

/** All events, newest first, up to `?at=`; of `?kind=`, `?organization=` and `?id=`. */
export function EventsPart() {
  const asked = query.value;
  const path = eventsPath(asked, moment.value);
  const isNow = moment.value === null && asked.get('before') === null;
  return (
    <>
      <Filters asked={asked} />
      <EventsPage key={path} path={path} isNow={isNow} />
    </>
  );
}

function EventsPage({ path, isNow }: { path: string; isNow: boolean }) {
  const { data, failure, reload } = useResource<OperatorEvents>(
    path,
    isNow ? { everyMs: EVERY_MS } : {},
  );
  return (
    <>
      <Failure what="The events could not be read" failure={failure} retry={reload} />
      {data === null && failure === null && <Loading what="the events" />}
      {data?.events.length === 0 && <Nothing isOver={data.next === null} />}
      {data !== null && data.events.length > 0 && (
        <Table
          label="Events"
          columns={COLUMNS}
          rows={data.events}
          keyOf={({ sequence }) => sequence}
        />
      )}
      <div class="row-of-buttons">
        <button type="button" disabled={isNow} onClick={() => show('at', null)}>
          Newest
        </button>
        <button
          type="button"
          disabled={data === null || data.next === null}
          onClick={() => show('before', data?.next ?? null)}
        >
          Older events
        </button>
      </div>
    </>
  );
}

function show(name: string, value: string | null): void {
  setQuery(withParameter(query.value, name, value));
}

function Filters({ asked }: { asked: URLSearchParams }) {
  const wanted = asked.get('kind');
  return (
    <div class="chips" role="group" aria-label="Events of">
      {KINDS.map(({ kind, title }) => (
        <button
          key={kind}
          type="button"
          class="chip"
          aria-pressed={kind === wanted}
          onClick={() => show('kind', kind === wanted ? null : kind)}
        >
          {title}
        </button>
      ))}
      {['organization', 'id'].map((name) => {
        const value = asked.get(name);
        return (
          value !== null && (
            <button
              key={name}
              type="button"
              class="chip"
              aria-pressed={true}
              aria-label={`Without the filter ${name} ${value}`}
              onClick={() => show(name, null)}
            >
              {name === 'id' ? '' : `${name} `}
              <code>{value}</code> ✕
            </button>
          )
        );
      })}
    </div>
  );
}

/** A session of the tab's own organization has a page; of others there are their events. */
function Aggregate({ of }: { of: OperatorEvent }) {
  const { kind, aggregate_id: id, organization_id: organization, sequence } = of;
  const isOwn = kind === 'session' && organization === caller.value?.id;
  const isNamed = organization !== null && organization !== id;
  return (
    <span class="stacked">
      <Link
        to={
          isOwn
            ? `${sessionPath(id)}?at=${sequence}`
            : eventsAddress(organization === id ? { kind, organization } : { kind, id })
        }
      >
        <code>{id}</code>
      </Link>
      {isNamed && <span class="muted small">{organization}</span>}
    </span>
  );
}

function Nothing({ isOver }: { isOver: boolean }) {
  return (
    <Empty title="No event matches">
      <p class="muted">
        {isOver
          ? 'Every change is an event. Of these there is none, or all of them are archived.'
          : 'There is none among the events that were read. Older ones may match.'}
      </p>
    </Empty>
  );
}

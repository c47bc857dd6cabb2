import type { SessionState } from '#events/session.ts';
import { Failure } from '../shell/states.tsx';
import { formatTime } from '../shell/time.tsx';
import type { Resource } from '../api/use-resource.ts';
import { chainOf, type HistoryEvent, type Why } from './history.ts';
import { readable, withoutName } from './sentence.ts';
import { anchorOf } from './timeline.tsx';

type WhyProps = {
  why: Resource<Why>;
  /** The events until the moment that the page shows; null: it shows now. */
  until: readonly HistoryEvent[] | null;
  status: SessionState['status'] | undefined;
};

/** Why the session is where it is, in a sentence; each part of it leads to its event. */
export function WhyLine({ why: { data, failure, reload }, until, status }: WhyProps) {
  if (data === null && until === null)
    return <Failure what="Why could not be read" failure={failure} retry={reload} />;
  const chain = until === null ? (data?.chain ?? []) : chainOf(until);
  const told = data?.black_box?.told ?? [];
  const isEnding = status === 'stopping' || status === 'stopped' || status === 'failed';
  return (
    <div class="why">
      {until === null && <p>{readable(withoutName(data?.summary ?? ''), formatTime)}</p>}
      {chain.length > 0 && (
        <p>
          <strong>{isEnding ? 'Why' : 'Last'}:</strong>{' '}
          {chain.map(({ sentence, sequence }, index) => (
            <span key={`${index} ${sentence}`}>
              {index > 0 && <span class="muted"> because </span>}
              <Part sentence={sentence} sequence={sequence} />
            </span>
          ))}
        </p>
      )}
      {until === null && told.length > 0 && (
        <ul>
          {told.map((line) => (
            <li key={line}>{readable(line, formatTime)}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Part({ sentence, sequence }: { sentence: string; sequence: number | null }) {
  const text = readable(sentence, formatTime);
  const shown = text.slice(0, 1).toLowerCase() + text.slice(1);
  return sequence === null ? <>{shown}</> : <a href={`#${anchorOf(sequence)}`}>{shown}</a>;
}

import { useEffect } from 'preact/hooks';
import { moment, setMoment } from '../shell/moment.ts';
import { formatTime } from '../shell/time.tsx';
import { countAt, type HistoryEvent } from './history.ts';

type SliderProps = {
  events: readonly HistoryEvent[];
  /** How many of the events had happened at the moment; null: now. */
  count: number | null;
};

/** Moves the page through the session's events; its right end is now. Arrow keys step. */
export function TimeSlider({ events, count }: SliderProps) {
  const end = events.length + 1;
  const value = count ?? end;
  function moveTo(position: number) {
    if (position >= end) return setMoment(null);
    const event = events[Math.max(1, position) - 1];
    if (event !== undefined) setMoment({ sequence: event.sequence });
  }
  // The address has the moment before the page shows it: no key of a quick hand is lost.
  const moveBy = (step: -1 | 1) => moveTo((countAt(events, moment.value) ?? end) + step);
  useArrowKeys(moveBy);
  const shown = count === null ? undefined : events[count - 1];
  const text =
    count === null
      ? 'Now'
      : shown === undefined
        ? 'Before its first event'
        : `Event ${count} of ${events.length}: ${shown.type}, ${formatTime(shown.time)}`;
  return (
    <section class={`slider card ${count === null ? '' : 'past'}`} aria-label="Moment">
      <button
        type="button"
        class="quiet"
        aria-label="Previous event"
        disabled={value <= 1}
        onClick={() => moveBy(-1)}
      >
        ←
      </button>
      <input
        type="range"
        min={1}
        max={end}
        value={value}
        aria-label="Moment that the page shows"
        aria-valuetext={text}
        onInput={(event) => moveTo(Number(event.currentTarget.value))}
      />
      <button
        type="button"
        class="quiet"
        aria-label="Next event"
        disabled={count === null}
        onClick={() => moveBy(1)}
      >
        →
      </button>
      <output class={count === null ? 'live' : ''}>{text}</output>
      {count !== null && (
        <button type="button" onClick={() => setMoment(null)}>
          Back to now
        </button>
      )}
    </section>
  );
}

/** Left and right, while nothing that uses them itself has the focus. */
function useArrowKeys(onStep: (step: -1 | 1) => void): void {
  useEffect(() => {
    function onKey(event: KeyboardEvent) {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      if (target.closest('input, textarea, select, pre, dialog, .screen') !== null) return;
      if (event.key === 'ArrowLeft') onStep(-1);
      if (event.key === 'ArrowRight') onStep(1);
    }
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });
}

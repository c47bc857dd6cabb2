import { useLayoutEffect, useRef } from 'preact/hooks';
import { fieldOf } from './form-field.ts';
import { moment, setMoment } from './moment.ts';

/**
 * Chooses the time of `?at=`. It counts once it is submitted, for each reading costs. If the field
 * is empty, the page shows now again.
 */
export function MomentChooser() {
  const at = moment.value;
  const time = at !== null && 'time' in at ? at.time : null;
  const field = useRef<HTMLInputElement>(null);
  // Not at other times: what is half typed stays.
  useLayoutEffect(() => {
    if (field.current !== null) field.current.value = time === null ? '' : localOf(time);
  }, [time]);
  return (
    <form class="moment-chooser" onSubmit={submit}>
      <label>
        As of{' '}
        <input name="time" type="datetime-local" step={1} max="9999-12-31T23:59:59" ref={field} />
      </label>
      <button type="submit">Show</button>
      {at !== null && (
        <button type="button" onClick={() => setMoment(null)}>
          Back to now
        </button>
      )}
    </form>
  );
}

function submit(event: SubmitEvent): void {
  event.preventDefault();
  const text = fieldOf(event.currentTarget as HTMLFormElement, 'time');
  setMoment(text === '' ? null : { time: new Date(text).toISOString() });
}

/** By the clock of the browser, as the field has it: `2026-11-20T09:30:00`. */
function localOf(time: string): string {
  const at = new Date(time);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

import { moment, setMoment } from './moment.ts';

/** Chooses the time of `?at=`; the page shows now again when the field is empty. */
export function MomentChooser() {
  const at = moment.value;
  const time = at !== null && 'time' in at ? at.time : null;
  return (
    <span class="moment-chooser">
      <label>
        As of{' '}
        <input
          type="datetime-local"
          step={1}
          value={time === null ? '' : localOf(time)}
          onChange={({ currentTarget: { value } }) =>
            setMoment(value === '' ? null : { time: new Date(value).toISOString() })
          }
        />
      </label>
      {at !== null && (
        <button type="button" onClick={() => setMoment(null)}>
          Back to now
        </button>
      )}
    </span>
  );
}

/** By the clock of the browser, as the field has it: `2026-11-20T09:30:00`. */
function localOf(time: string): string {
  const at = new Date(time);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

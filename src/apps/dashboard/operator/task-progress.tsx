import { formatSpan, formatTime } from '../shell/time.tsx';
import type { Task } from './answers.ts';
import { numberOf } from './words.ts';

/** How far long work is, or how it ended. `what`: `The rebuild of servers`. */
export function TaskProgress({ what, task }: { what: string; task: Task }) {
  const { state, progress } = task;
  if (state === 'failed')
    return (
      <p class="notice bad" role="alert">
        {what} failed: {task.failure}
      </p>
    );
  if (state === 'done')
    return (
      <p class="muted" role="status">
        {what} ended <time dateTime={task.ended_at ?? ''}>{formatTime(task.ended_at ?? '')}</time>
        {task.ended_at !== null && `, after ${spanOf(task.started_at, task.ended_at)}`}.
      </p>
    );
  return (
    <div class="card progress">
      <span role="status">{what} is running.</span>
      <progress aria-label={what} value={progress?.done} max={progress?.of} />
      <span class="muted">
        {progress === null
          ? 'It is beginning.'
          : `Event ${numberOf(progress.done)} of ${numberOf(progress.of)}`}
      </span>
    </div>
  );
}

const spanOf = (from: string, to: string) => formatSpan(Date.parse(to) - Date.parse(from));

import type { SessionStatus } from '#events/session.ts';

const MARKS: Readonly<Record<SessionStatus, string>> = {
  creating: '◔',
  queued: '◷',
  active: '●',
  stopping: '◑',
  stopped: '○',
  failed: '✕',
};

/** A status by its colour, its mark and its word. */
export function StatusBadge({ status }: { status: SessionStatus }) {
  return (
    <span class={`status ${status}`}>
      <span aria-hidden="true">{MARKS[status]}</span> {status}
    </span>
  );
}

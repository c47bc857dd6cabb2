import { parseSubject } from '#events/subjects.ts';

const ENDS = ['session.stopped', 'session.failed'];

/** Whether the event ends a session. */
export function isSessionEnd(subject: string): boolean {
  // Most subjects are distinguished by their last letters, without a parse.
  if (!subject.endsWith('.stopped') && !subject.endsWith('.failed')) return false;
  return ENDS.includes(parseSubject(subject)?.type ?? '');
}

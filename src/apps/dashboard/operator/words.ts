import { formatSpan } from '../shell/span.ts';
import type {
  ArchiveResult,
  DeadLetter,
  DecidedDeadLetter,
  LedgerResult,
  ReadModel,
} from './answers.ts';

const numbers = new Intl.NumberFormat();

export const numberOf = (value: number) => numbers.format(value);

/** `1 event`, `1,204 events`. */
export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${numberOf(count)} ${count === 1 ? one : many}`;
}

/** What a read model is for, by its name; empty: of none of this version. */
export function purposeOf(name: string): string {
  return PURPOSES[name.replace(/:.*$/, '')] ?? '';
}

const PURPOSES: Readonly<Record<string, string>> = {
  'session-view': 'each session, as the API shows it',
  'organization-sessions': 'the list of each organization’s sessions',
  profiles: 'the browser profiles of each organization',
  servers: 'the browser servers and their browsers',
  workloads: 'what runs on each server',
};

export function lagOf({ lag_events: events, lag_ms: ms }: ReadModel): string {
  if (events === null) return 'not folded any more';
  if (events === 0) return 'up to date';
  return ms === null ? countOf(events, 'event') : `${countOf(events, 'event')}, ${formatSpan(ms)}`;
}

/** Where an event is, in words: `event 17`, `message 4 of INBOX`. */
export function placeOf({ stream, sequence }: Pick<DeadLetter, 'stream' | 'sequence'>): string {
  return stream === 'EVENTS' ? `event ${sequence}` : `message ${sequence} of ${stream}`;
}

/** What came of a decision on a dead letter. */
export function outcomeOf(letter: DecidedDeadLetter): string {
  const place = placeOf(letter);
  const named = place.charAt(0).toUpperCase() + place.slice(1);
  if (letter.outcome === 'mended') return `${named} is handled now: it is no dead letter any more.`;
  if (letter.outcome === 'skipped') return `${named} is left out for good, with your reason.`;
  return `${named} still fails, and stays here: ${letter.failure ?? 'no reason was given'}`;
}

/** The verdict on all ledgers. */
export function verdictOf({ agrees, organizations, up_to, unreadable }: LedgerResult): string {
  const differ = organizations.filter((one) => !one.agrees).length;
  const all = countOf(organizations.length, 'ledger');
  const verdict = agrees
    ? `${all}: each agrees with its sessions`
    : `${numberOf(differ)} of ${all} ${differ === 1 ? 'differs' : 'differ'} from the sessions`;
  const missing = unreadable === 0 ? '' : ` ${countOf(unreadable, 'event')} could not be read.`;
  return `${verdict}, up to event ${numberOf(up_to)}.${missing}`;
}

/** The verdict on the archived part of the log. */
export function archiveVerdictOf({ agrees, segments, records }: ArchiveResult): string {
  if (agrees && segments === 0) return 'Nothing is archived yet.';
  const counted = `${countOf(records, 'event')} in ${countOf(segments, 'segment')}`;
  return agrees ? `${counted}: all as they were sealed.` : `${counted}: not as they were sealed.`;
}

import { join, resolve } from 'node:path';
import { BadConfig, duration, integer, type Read } from './parse.ts';
import { readS3, s3Variables, type S3Place } from './s3.ts';

export type ArchiveConfig = {
  /** null: nothing is archived. */
  retainEndedMs: number | null;
  /** Events that the event store keeps; those of the last day stay in any case. */
  retainEventsMax: number;
  everyMs: number;
  place: ArchivePlace;
};

export type ArchivePlace = { folder: string } | S3Place;

export const archiveVariables = {
  RETAIN_ENDED: {
    fallback: '30d',
    meaning: 'age at which events of what has ended are archived; or forever',
  },
  RETAIN_EVENTS_MAX: {
    // 200,000 sessions. What nats-server needs grows with each that is kept: memory, a pause
    // after a purge, Go's collector. The runbook says how much.
    fallback: '2500000',
    meaning:
      'maximum number of events in the event store; beyond it the oldest are archived ' +
      'before RETAIN_ENDED, once a day old',
  },
  ARCHIVE_EVERY: { fallback: '24h', meaning: 'how often the archivist archives' },
  ARCHIVE_URL: {
    fallback: '',
    meaning: 'folder of the archive, or s3://bucket/prefix; empty: DATA_DIR/archive',
  },
} as const;
type Name = keyof typeof archiveVariables | keyof typeof s3Variables | 'DATA_DIR' | 'OBJECT_STORE';

/** @throws BadConfig naming the variable that is wrong */
export function readArchive(read: Read<Name>): ArchiveConfig {
  return {
    retainEndedMs: read('RETAIN_ENDED') === 'forever' ? null : duration('RETAIN_ENDED', read),
    retainEventsMax: integer('RETAIN_EVENTS_MAX', read, 100_000, 1e12),
    everyMs: duration('ARCHIVE_EVERY', read),
    place: readPlace(read),
  };
}

function readPlace(read: Read<Name>): ArchivePlace {
  const text = read('ARCHIVE_URL');
  const place = readS3('ARCHIVE_URL', read);
  if (place !== null) return place;
  if (text.includes('://')) throw new BadConfig(`ARCHIVE_URL: ${text} is no folder and not s3://…`);
  return { folder: text === '' ? join(resolve(read('DATA_DIR')), 'archive') : resolve(text) };
}

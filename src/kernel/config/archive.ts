import { join, resolve } from 'node:path';
import { BadConfig, duration, integer, text, type Form, type Values, variable } from './parse.ts';
import { readS3, type S3Place, type S3Values } from './s3.ts';

export type ArchiveConfig = {
  /** null: nothing is archived. */
  retainEndedMs: number | null;
  /** Events that the event store keeps; those of the last day stay in any case. */
  retainEventsMax: number;
  everyMs: number;
  place: ArchivePlace;
};

export type ArchivePlace = { folder: string } | S3Place;

/** null: forever. */
const foreverOrDuration: Form<number | null> = {
  says: '',
  parse: (given, name) => (given === 'forever' ? null : duration().parse(given, name)),
};

export const archiveVariables = {
  RETAIN_ENDED: variable(
    foreverOrDuration,
    '30d',
    'age at which events of what has ended are archived; or forever',
  ),
  // 200,000 sessions. What nats-server needs grows with each that is kept: memory, a pause
  // after a purge, Go's collector. The runbook says how much.
  RETAIN_EVENTS_MAX: variable(
    integer(100_000, 1e12),
    '2500000',
    'maximum number of events in the event store; beyond it the oldest are archived ' +
      'before RETAIN_ENDED, once a day old',
  ),
  ARCHIVE_EVERY: variable(duration(), '24h', 'how often the archivist archives'),
  ARCHIVE_URL: variable(
    text,
    '',
    'folder of the archive, or s3://bucket/prefix; empty: DATA_DIR/archive',
  ),
} as const;
type Given = Values<typeof archiveVariables> & S3Values & { DATA_DIR: string };

/** @throws BadConfig naming the variable that is wrong */
export function readArchive(values: Given): ArchiveConfig {
  return {
    retainEndedMs: values.RETAIN_ENDED,
    retainEventsMax: values.RETAIN_EVENTS_MAX,
    everyMs: values.ARCHIVE_EVERY,
    place: readPlace(values),
  };
}

function readPlace(values: Given): ArchivePlace {
  const { ARCHIVE_URL: given, DATA_DIR: dataDir } = values;
  const place = readS3('ARCHIVE_URL', values);
  if (place !== null) return place;
  if (given.includes('://'))
    throw new BadConfig(`ARCHIVE_URL: ${given} is no folder and not s3://…`);
  return { folder: given === '' ? join(resolve(dataDir), 'archive') : resolve(given) };
}

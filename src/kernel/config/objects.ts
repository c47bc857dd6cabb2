import { BadConfig, integer, wait, type Read } from './parse.ts';
import { readS3, type s3Variables, type S3Place } from './s3.ts';

export type ObjectsConfig = {
  place: 'jetstream' | S3Place;
  /** Greatest size of the stream OBJECTS. */
  maxBytes: number;
  /** What one organization may have in it; null: a third, where the store has a size. */
  organizationMaxBytes: number | null;
  sweepEveryMs: number;
  /** How long the archive of a replaced version of a profile stays. */
  replacedKeptMs: number;
};

export const objectsVariables = {
  OBJECT_STORE: {
    fallback: 'jetstream',
    meaning:
      'place of files, profiles, recordings and extensions: jetstream (in NATS) or ' +
      's3://bucket/prefix',
  },
  OBJECT_STORE_MAX_MB: {
    fallback: '8192',
    meaning: 'their maximum size in NATS; less where NATS has no room',
  },
  OBJECT_STORE_ORGANIZATION_MAX_MB: {
    fallback: '0',
    meaning: 'the same for one organization; 0: a third in NATS, no limit in S3',
  },
  OBJECT_SWEEP_EVERY: {
    fallback: '1h',
    meaning: 'how often the archivist removes expired objects',
  },
  PROFILE_REPLACED_KEPT: {
    fallback: '2d',
    meaning:
      'how long a bucket keeps replaced versions of profiles, which a restored backup of ' +
      'this age needs; NATS keeps them for an hour',
  },
} as const;
type Name = keyof typeof objectsVariables | keyof typeof s3Variables | 'ARCHIVE_URL';

const MIB = 1024 ** 2;

/** @throws BadConfig naming the variable that is wrong */
export function readObjects(read: Read<Name>): ObjectsConfig {
  const place = readPlace(read);
  const replacedKeptMs = wait('PROFILE_REPLACED_KEPT', read);
  return {
    place,
    maxBytes: integer('OBJECT_STORE_MAX_MB', read, 64, 100_000_000) * MIB,
    organizationMaxBytes:
      integer('OBJECT_STORE_ORGANIZATION_MAX_MB', read, 0, 100_000_000) * MIB || null,
    sweepEveryMs: wait('OBJECT_SWEEP_EVERY', read),
    // Those in NATS are in the backup of NATS.
    replacedKeptMs: place === 'jetstream' ? 0 : replacedKeptMs,
  };
}

function readPlace(read: Read<Name>): ObjectsConfig['place'] {
  const text = read('OBJECT_STORE');
  if (text === 'jetstream') return text;
  const place = readS3('OBJECT_STORE', read);
  if (place === null)
    throw new BadConfig(`OBJECT_STORE: ${text} is neither jetstream nor like s3://bucket/prefix`);
  return place;
}

import { BadConfig, mebibytes, text, wait, type Values, variable } from './parse.ts';
import { readS3, type S3Place, type S3Values } from './s3.ts';

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
  OBJECT_STORE: variable(
    text,
    'jetstream',
    'place of files, profiles, recordings and extensions: jetstream (in NATS) or ' +
      's3://bucket/prefix',
  ),
  OBJECT_STORE_MAX_MB: variable(
    mebibytes(64, 100_000_000),
    '8192',
    'their maximum size in NATS; less where NATS has no room',
  ),
  OBJECT_STORE_ORGANIZATION_MAX_MB: variable(
    mebibytes(0, 100_000_000),
    '0',
    'the same for one organization; 0: a third in NATS, no limit in S3',
  ),
  OBJECT_SWEEP_EVERY: variable(wait(), '1h', 'how often the archivist removes expired objects'),
  PROFILE_REPLACED_KEPT: variable(
    wait(),
    '2d',
    'how long a bucket keeps replaced versions of profiles, which a restored backup of ' +
      'this age needs; NATS keeps them for an hour',
  ),
} as const;
type Given = Values<typeof objectsVariables> & S3Values;

/** @throws BadConfig naming the variable that is wrong */
export function readObjects(values: Given): ObjectsConfig {
  const place = readPlace(values);
  const replacedKeptMs = values.PROFILE_REPLACED_KEPT;
  return {
    place,
    maxBytes: values.OBJECT_STORE_MAX_MB,
    organizationMaxBytes: values.OBJECT_STORE_ORGANIZATION_MAX_MB || null,
    sweepEveryMs: values.OBJECT_SWEEP_EVERY,
    // Those in NATS are in the backup of NATS.
    replacedKeptMs: place === 'jetstream' ? 0 : replacedKeptMs,
  };
}

function readPlace(values: Given): ObjectsConfig['place'] {
  const { OBJECT_STORE: given } = values;
  if (given === 'jetstream') return given;
  const place = readS3('OBJECT_STORE', values);
  if (place === null)
    throw new BadConfig(`OBJECT_STORE: ${given} is neither jetstream nor like s3://bucket/prefix`);
  return place;
}

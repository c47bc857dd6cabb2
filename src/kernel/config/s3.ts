import { BadConfig, optional, text, type Values, variable } from './parse.ts';

/** A bucket for the archive or for objects; the prefix has no slash at its end. */
export type S3Place = { bucket: string; prefix: string; endpoint: string | null; region: string };

/** How the buckets of ARCHIVE_URL and of OBJECT_STORE are reached. */
export const s3Variables = {
  ARCHIVE_S3_ENDPOINT: variable(
    optional(text),
    '',
    'URL of an S3-compatible server for the archive and OBJECT_STORE; empty: AWS; ' +
      'credentials as for any AWS client',
  ),
  ARCHIVE_S3_REGION: variable(text, 'us-east-1', 'region of the buckets'),
} as const;
type Place = 'ARCHIVE_URL' | 'OBJECT_STORE';
/** Both places are looked at: an endpoint serves either. */
export type S3Values = Values<typeof s3Variables> & Record<Place, string>;

/**
 * The bucket that a variable names; null if it is not like `s3://…`.
 * @throws BadConfig naming the variable that is wrong
 */
export function readS3(name: Place, values: S3Values): S3Place | null {
  const { ARCHIVE_S3_ENDPOINT: endpoint, ARCHIVE_S3_REGION: region } = values;
  const isUsed = [values.ARCHIVE_URL, values.OBJECT_STORE].some(isS3);
  if (endpoint !== null && !isUsed)
    throw new BadConfig('ARCHIVE_S3_ENDPOINT: neither ARCHIVE_URL nor OBJECT_STORE is s3://…');
  const given = values[name];
  if (!isS3(given)) return null;
  const [, bucket, prefix = ''] = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(given) ?? [];
  if (bucket === undefined) throw new BadConfig(`${name}: ${given} is not like s3://bucket/prefix`);
  if (endpoint !== null && URL.parse(endpoint) === null)
    throw new BadConfig(`ARCHIVE_S3_ENDPOINT: ${endpoint} is not a URL`);
  return { bucket, prefix: prefix.replace(/\/$/, ''), endpoint, region };
}

function isS3(given: string): boolean {
  return given.startsWith('s3://');
}

import { BadConfig, type Read } from './parse.ts';

/** A bucket for the archive or for objects; the prefix has no slash at its end. */
export type S3Place = { bucket: string; prefix: string; endpoint: string | null; region: string };

/** How the buckets of ARCHIVE_URL and of OBJECT_STORE are reached. */
export const s3Variables = {
  ARCHIVE_S3_ENDPOINT: {
    fallback: '',
    meaning:
      'URL of an S3-compatible server for the archive and OBJECT_STORE; empty: AWS; ' +
      'credentials as for any AWS client',
  },
  ARCHIVE_S3_REGION: { fallback: 'us-east-1', meaning: 'region of the buckets' },
} as const;
type Place = 'ARCHIVE_URL' | 'OBJECT_STORE';
type Name = keyof typeof s3Variables | Place;

/**
 * The bucket that a variable names; null if it is not like `s3://…`.
 * @throws BadConfig naming the variable that is wrong
 */
export function readS3(name: Place, read: Read<Name>): S3Place | null {
  const endpoint = read('ARCHIVE_S3_ENDPOINT') || null;
  const isUsed = [read('ARCHIVE_URL'), read('OBJECT_STORE')].some(isS3);
  if (endpoint !== null && !isUsed)
    throw new BadConfig('ARCHIVE_S3_ENDPOINT: neither ARCHIVE_URL nor OBJECT_STORE is s3://…');
  const text = read(name);
  if (!isS3(text)) return null;
  const [, bucket, prefix = ''] = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(text) ?? [];
  if (bucket === undefined) throw new BadConfig(`${name}: ${text} is not like s3://bucket/prefix`);
  if (endpoint !== null && URL.parse(endpoint) === null)
    throw new BadConfig(`ARCHIVE_S3_ENDPOINT: ${endpoint} is not a URL`);
  const region = read('ARCHIVE_S3_REGION');
  return { bucket, prefix: prefix.replace(/\/$/, ''), endpoint, region };
}

function isS3(text: string): boolean {
  return text.startsWith('s3://');
}

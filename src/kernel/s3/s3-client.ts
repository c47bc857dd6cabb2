import { S3Client, S3ServiceException } from '@aws-sdk/client-s3';

/** A bucket and how it is reached, for all that is kept in one. */
export type S3Options = {
  bucket: string;
  /** Begins the keys of all that is kept, with its slash; default: none. */
  prefix?: string;
  region: string;
  /** A server other than AWS, which is addressed by paths. */
  endpoint?: string;
  /** Default: those of the environment, as the SDK finds them. */
  credentials?: { accessKeyId: string; secretAccessKey: string };
};

/** A server that cannot be connected to, or that falls silent within an answer. */
const CONNECT_MS = 5_000;
const SILENCE_MS = 120_000;

export function createS3Client({ region, endpoint, credentials }: S3Options): S3Client {
  const server =
    endpoint === undefined
      ? {}
      : {
          endpoint,
          forcePathStyle: true,
          // Checksums of AWS's own kind are not known to all servers.
          requestChecksumCalculation: 'WHEN_REQUIRED' as const,
          responseChecksumValidation: 'WHEN_REQUIRED' as const,
        };
  return new S3Client({
    region,
    ...server,
    ...(credentials === undefined ? {} : { credentials }),
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: SILENCE_MS },
  });
}

/** The HTTP status of an answer that is an error; undefined for all other errors. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}

import { ensureS3Server } from './real-s3.ts';

/** Before the long tests: builds an S3 server where Go is there, which takes a minute or two. */
export async function setup(): Promise<void> {
  process.env['TEST_S3_SERVER'] = (await ensureS3Server((line) => console.error(line))) ?? 'none';
}

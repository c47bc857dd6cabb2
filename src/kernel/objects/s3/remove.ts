import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  ListMultipartUploadsCommand,
} from '@aws-sdk/client-s3';
import { isKey } from '../object-key.ts';
import { ObjectStoreUnavailable, type Freeing } from '../object-store.ts';
import { beginOfPut } from '../put-id.ts';
import { raise, UNFINISHED, type ObjectBucket } from './bucket.ts';

/** Removes the objects under the prefix, and returns how many there were. */
export async function removeObjects(
  bucket: ObjectBucket,
  prefix: string,
  { freed }: Freeing = {},
): Promise<number> {
  const { client, Bucket, root } = bucket;
  let removed = 0;
  for await (const page of bucket.pages(prefix)) {
    const found = page.filter(({ key }) => isKey(key));
    const Objects = found.map(({ key }) => ({ Key: root + key }));
    if (Objects.length === 0) continue;
    const batch = { Bucket, Delete: { Objects, Quiet: true } };
    const { Errors = [] } = await client.send(new DeleteObjectsCommand(batch)).catch(raise);
    const [refused] = Errors;
    if (refused !== undefined)
      throw new ObjectStoreUnavailable(new Error(`${refused.Code}: ${refused.Message}`));
    removed += Objects.length;
    for (const { bytes } of found) freed?.(bytes);
  }
  return removed;
}

/** Removes what puts that began before a time have left: objects that were not copied, parts. */
export async function removeLeftovers(bucket: ObjectBucket, before: number): Promise<number> {
  const { client, Bucket, root, at } = bucket;
  const isOld = (key: string) => {
    const begunAt = beginOfPut(key.slice(UNFINISHED.length));
    return begunAt !== null && begunAt < before;
  };
  let removed = 0;
  for await (const page of bucket.pages(UNFINISHED))
    for (const { key } of page.filter((one) => isOld(one.key))) {
      await client.send(new DeleteObjectCommand(at(key))).catch(raise);
      removed += 1;
    }
  // At most 1,000 in one answer; the next sweep sees the others.
  const listed = new ListMultipartUploadsCommand({ Bucket, Prefix: root + UNFINISHED });
  const { Uploads = [] } = await client.send(listed).catch(raise);
  for (const { Key = '', UploadId } of Uploads) {
    if (!isOld(Key.slice(root.length))) continue;
    await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId })).catch(raise);
    removed += 1;
  }
  return removed;
}

import type { Batch, PageQuery, ViewWrite } from './views.ts';

/** Bounds of the views port, held by every adapter. */

/**
 * Views in one atomic write, 5 to 10 ms of the store's time. The store cannot cut a larger batch: a
 * view in it stands for several events, so only who folded it knows where a checkpoint would be
 * true.
 */
export const writesMax = 500;

/** Views in one page. */
export const pageMax = 1000;

/** @throws RangeError: a bug of the one who folded. */
export function assertBatch({ after, upTo, writes }: Batch): void {
  assertWrites(writes);
  for (const { key, sequence } of writes)
    if (!(sequence > after && sequence <= upTo))
      throw new RangeError(`${key}: ${sequence} is not in the batch (${after}, ${upTo}]`);
}

/** @throws RangeError: a bug of the one who folded. */
export function assertWrites(writes: readonly ViewWrite[]): void {
  if (writes.length > writesMax)
    throw new RangeError(`${writes.length} views in one write, at most ${writesMax}`);
  if (new Set(writes.map(({ key }) => key)).size < writes.length)
    throw new RangeError('a view comes twice in one write');
}

/** @throws RangeError: a bug of the one who asks. */
export function assertPage({ lists, offset, limit }: PageQuery): void {
  const isWhole = Number.isInteger(offset) && Number.isInteger(limit);
  if (lists.length === 0 || !isWhole || offset < 0 || limit < 1 || limit > pageMax)
    throw new RangeError(`no page: lists ${lists.join()}, offset ${offset}, limit ${limit}`);
}

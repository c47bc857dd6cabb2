import type { Batch, PageQuery, ViewWrite } from './views.ts';

/** Limits of the views port, enforced by every adapter. */

/**
 * Views in one atomic write: 5 to 10 ms of the store's time. The store cannot split a larger batch:
 * a view may contain several events, so only the projector knows where a checkpoint is possible.
 */
export const writesMax = 500;

/** Views in one page. */
export const pageMax = 1000;

/** @throws RangeError: a bug of the projector. */
export function assertBatch({ after, upTo, writes }: Batch): void {
  assertWrites(writes);
  for (const { key, sequence } of writes)
    if (!(sequence > after && sequence <= upTo))
      throw new RangeError(`${key}: ${sequence} is not in the batch (${after}, ${upTo}]`);
}

/** @throws RangeError: a bug of the projector. */
export function assertWrites(writes: readonly ViewWrite[]): void {
  if (writes.length > writesMax)
    throw new RangeError(`${writes.length} views in one write, at most ${writesMax}`);
  if (new Set(writes.map(({ key }) => key)).size < writes.length)
    throw new RangeError('the same view twice in one write');
}

/** @throws RangeError: a bug of the caller. */
export function assertPage({ lists, offset, limit }: PageQuery): void {
  const isWhole = Number.isInteger(offset) && Number.isInteger(limit);
  if (lists.length === 0 || !isWhole || offset < 0 || limit < 1 || limit > pageMax)
    throw new RangeError(`invalid page: lists ${lists.join()}, offset ${offset}, limit ${limit}`);
}

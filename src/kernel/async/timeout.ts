/**
 * The result of the work, if it is there within `ms` milliseconds. The work itself goes on; what
 * comes of it later, a failure too, is dropped.
 * @param onTimeout gives the result if the work is late, or throws
 * @throws what the work or `onTimeout` throws; without `onTimeout` Error if the work is late
 */
export async function within<Result, Late = never>(
  ms: number,
  work: Promise<Result>,
  onTimeout: () => Late = () => {
    throw new Error(`no answer within ${ms} ms`);
  },
): Promise<Result | Late> {
  const { promise: isLate, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  try {
    return await Promise.race([work, isLate.then(onTimeout)]);
  } finally {
    clearTimeout(timer);
  }
}

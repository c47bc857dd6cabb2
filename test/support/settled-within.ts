/**
 * The result of a call, which must be settled before a timer that is set at the same moment. On a
 * busy machine both are late, so the order is that of an idle one.
 */
export async function settledWithin<T>(ms: number, call: PromiseLike<T>): Promise<T> {
  const timer = Promise.withResolvers<never>();
  const handle = setTimeout(() => timer.reject(new Error(`not settled within ${ms} ms`)), ms);
  return Promise.race([call, timer.promise]).finally(() => clearTimeout(handle));
}

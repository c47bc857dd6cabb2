/**
 * The result of a call, which must be settled before a timer that is set at the same moment. On a
 * busy machine both are late, so the order is that of an idle one: what has arrived when the timer
 * fires is handled first, in the next two turns of the event loop.
 */
export async function settledWithin<T>(ms: number, call: PromiseLike<T>): Promise<T> {
  const timer = Promise.withResolvers<never>();
  const fail = () => timer.reject(new Error(`not settled within ${ms} ms`));
  const handle = setTimeout(() => setImmediate(() => setImmediate(fail)), ms);
  return Promise.race([call, timer.promise]).finally(() => clearTimeout(handle));
}

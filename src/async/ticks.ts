/**
 * Milliseconds until the next multiple of the period on this process's clock. Polls that wait this
 * long wake the process together, and their requests go out in one write.
 */
export function untilTickOf(everyMs: number): number {
  return Math.ceil(everyMs - (performance.now() % everyMs));
}

import type { ServerResponse } from 'node:http';
import { SLOWEST } from '#src/kernel/foreign/pace.ts';

/** The system takes shorter answers from this process at once. */
const SHORT_BYTES = 64 * 1024;

/**
 * Cuts off who reads an answer slower than it may, 120 s and a second for each 64 KiB: it is held
 * in memory until the system has all of it.
 * @param bytes of the answer, which is about to be sent
 */
export function boundReading(
  response: Pick<ServerResponse, 'destroy' | 'once'>,
  bytes: number,
): void {
  if (bytes <= SHORT_BYTES) return;
  const ms = SLOWEST.creditMs + (bytes / SLOWEST.bytesPerSecond) * 1_000;
  const late = setTimeout(() => response.destroy(), ms).unref();
  const taken = () => clearTimeout(late);
  response.once('finish', taken);
  response.once('close', taken);
}

import { createHash, timingSafeEqual } from 'node:crypto';
import { reject, type Rejected } from '#src/errors.ts';

/** Who asks for the metrics. */
export type MetricsReader = {
  /** Address of the peer itself, whatever a proxy says of others. */
  address: string | undefined;
  headers: Readonly<Record<string, string | string[] | undefined>>;
};

/** What a proxy adds: who asked it is not of this machine, though the proxy may be. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

/**
 * Metrics tell how much a service is used. With a token it is asked of everybody; without one they
 * are for this machine alone, and for others there is nothing here.
 */
export function refuseMetrics(
  { address = '', headers }: MetricsReader,
  token: string | null,
): Rejected | null {
  if (token !== null) {
    const given = /^Bearer +(\S+)$/i.exec(String(headers['authorization'] ?? ''))?.[1] ?? '';
    return isSame(given, token) ? null : reject('UNAUTHORIZED');
  }
  const isForwarded = FORWARDED.some((name) => headers[name] !== undefined);
  return isLoopback(address) && !isForwarded ? null : reject('NOT_FOUND', { path: '/metrics' });
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./i.test(address);
}

/** In a time that does not tell how much of it was right. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

import { createHash, timingSafeEqual } from 'node:crypto';
import { reject, type Rejection } from '#src/errors.ts';

/** A request for the metrics. */
export type MetricsReader = {
  /** Address of the TCP peer, not one from a proxy's header. */
  address: string | undefined;
  headers: Readonly<Record<string, string | string[] | undefined>>;
};

/** Headers of proxies: a proxy on this machine may forward requests from others. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

/**
 * Metrics show how much a service is used. If a token is configured, every client must send it.
 * Without one only clients on this machine may read metrics; others get NOT_FOUND.
 */
export function refuseMetrics(
  { address = '', headers }: MetricsReader,
  token: string | null,
): Rejection | null {
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

/** Compares in constant time. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

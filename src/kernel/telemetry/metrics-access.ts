import { reject, type Rejection } from '#src/kernel/errors.ts';
import { isSameSecret } from '#src/kernel/http/same-secret.ts';
import { isLoopback, refuseReboundName, type MonitorRequest } from './local-host.ts';

/** Headers of proxies: a proxy on this machine may forward requests from others. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

/**
 * Metrics show how much a service is used. If a token is configured, every client must send it.
 * Without one only clients on this machine may read metrics, by one of its own names; others get
 * NOT_FOUND.
 */
export function refuseMetrics(
  request: MonitorRequest,
  token: string | null,
  ownHosts: readonly string[] = [],
): Rejection | null {
  const { address = '', headers } = request;
  if (token !== null) {
    const given = /^Bearer +(\S+)$/i.exec(String(headers['authorization'] ?? ''))?.[1] ?? '';
    return isSameSecret(given, token) ? null : reject('UNAUTHORIZED');
  }
  const isForwarded = FORWARDED.some((name) => headers[name] !== undefined);
  if (!isLoopback(address) || isForwarded) return reject('NOT_FOUND', { path: '/metrics' });
  return refuseReboundName(request, ownHosts, '/metrics');
}

import { BoundedMap } from '#src/kernel/async/bounded-map.ts';
import type { Metrics } from '#src/kernel/telemetry/metrics.ts';
import type { Gateway, GatewayMetrics } from './gateway.ts';

/** Metrics that the gateway updates at each event. */
export function gatewayMetrics(
  metrics: Pick<Metrics, 'createPhase' | 'gatewayRefused' | 'webdriverCommand'>,
): GatewayMetrics {
  const isFirst = createFirstSeen();
  return {
    opened(kind, sessionId, joinedMs) {
      if (kind === 'cdp' && isFirst(sessionId)) metrics.createPhase('first_cdp', joinedMs);
    },
    closed: () => undefined,
    refused: metrics.gatewayRefused,
    commanded: metrics.webdriverCommand,
  };
}

/** Metrics that are read from the gateway's counters at each scrape. */
export function watchGateway(
  metrics: Pick<Metrics, 'watch'>,
  gateway: Pick<Gateway, 'counters'>,
): void {
  const gives = [
    'bss_gateway_open_connections',
    'bss_gateway_connections_total',
    'bss_gateway_bytes_total',
  ] as const;
  metrics.watch(gives, () => {
    const { open, total, bytesIn, bytesOut } = gateway.counters();
    return {
      bss_gateway_open_connections: open,
      bss_gateway_connections_total: total,
      bss_gateway_bytes_total: { in: bytesIn, out: bytesOut },
    };
  });
}

/** Remembered sessions; the oldest is dropped first. */
const SESSIONS_MAX = 10_000;

/**
 * True at the first CDP connection of each session through this gateway. A session may count twice
 * if 10,000 others came in between.
 */
function createFirstSeen(): (sessionId: string) => boolean {
  const seen = new BoundedMap<string, true>(SESSIONS_MAX);
  return function isFirst(sessionId) {
    if (seen.has(sessionId)) return false;
    seen.set(sessionId, true);
    return true;
  };
}

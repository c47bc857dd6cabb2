import type { Metrics } from '#src/telemetry/metrics.ts';
import { createFirstTimes } from './first-cdp.ts';
import type { Gateway, GatewayMetrics } from './gateway.ts';

/** What a gateway counts as it happens. */
export function gatewayMetrics(
  metrics: Pick<Metrics, 'createPhase' | 'gatewayRefused'>,
): GatewayMetrics {
  const isFirst = createFirstTimes();
  return {
    opened(kind, sessionId, joinedMs) {
      if (kind === 'cdp' && isFirst(sessionId)) metrics.createPhase('first_cdp', joinedMs);
    },
    closed: () => undefined,
    refused: metrics.gatewayRefused,
  };
}

/** What it knows when it is asked. */
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

import type { EgressRefusal, EgressTraffic, HostTraffic } from '#events/egress.ts';
import { add, nothing, topOf, type Counted } from '#src/kernel/domain/egress/traffic.ts';

/** Hosts that are counted apart between two records; those beyond are one sum. */
const HOSTS_MAX = 500;

/** Counts a browser's traffic by host, between two records. */
export type TrafficCount = {
  connected: (host: string) => void;
  transferred: (host: string, bytes: Pick<Counted, 'bytesSent' | 'bytesReceived'>) => void;
  refused: (host: string, reason: EgressRefusal) => void;
  /** What was counted since the last call; null: nothing. */
  take(): EgressTraffic | null;
};

export function createTrafficCount(): TrafficCount {
  const hosts = new Map<string, HostTraffic>();
  let others = nothing;

  function count(host: string, counted: Partial<Counted>, lastRefusal?: EgressRefusal): void {
    const more = { ...nothing, ...counted };
    const known = hosts.get(host);
    if (known === undefined && hosts.size >= HOSTS_MAX) {
      others = add(others, more);
      return;
    }
    const sum = add(known ?? nothing, more);
    hosts.set(host, { ...known, host, ...sum, ...(lastRefusal && { lastRefusal }) });
  }
  return {
    connected: (host) => count(host, { connections: 1 }),
    transferred(host, bytes) {
      if (bytes.bytesSent + bytes.bytesReceived > 0) count(host, bytes);
    },
    refused: (host, reason) => count(host, { refused: 1 }, reason),
    take() {
      if (hosts.size === 0) return null;
      const taken = topOf([...hosts.values()], others);
      hosts.clear();
      others = nothing;
      return taken;
    },
  };
}

import type { EgressTotals, EgressTraffic, HostTraffic } from '#events/egress.ts';
import { egressHostsMax } from '#events/egress.ts';

/** What a session's browser sent, received and was refused, by host. Pure. */

/** What was counted for one host or for several. */
export type Counted = Pick<HostTraffic, 'connections' | 'bytesSent' | 'bytesReceived' | 'refused'>;

export const nothing: Counted = { connections: 0, bytesSent: 0, bytesReceived: 0, refused: 0 };

export function add(one: Counted, other: Counted): Counted {
  return {
    connections: one.connections + other.connections,
    bytesSent: one.bytesSent + other.bytesSent,
    bytesReceived: one.bytesReceived + other.bytesReceived,
    refused: one.refused + other.refused,
  };
}

/** The hosts with most bytes and refusals, at most `egressHostsMax`; the others as one sum. */
export function topOf(hosts: readonly HostTraffic[], others: Counted = nothing): EgressTraffic {
  const sorted = hosts.toSorted((a, b) => weightOf(b) - weightOf(a) || (a.host < b.host ? -1 : 1));
  return {
    hosts: sorted.slice(0, egressHostsMax),
    others: sorted.slice(egressHostsMax).reduce(add, { ...nothing, ...others }),
  };
}

/** The traffic before and the newly recorded one together. */
export function addTraffic(before: EgressTraffic | undefined, more: EgressTraffic): EgressTraffic {
  if (before === undefined) return topOf(more.hosts, more.others);
  const hosts = new Map(before.hosts.map((one) => [one.host, one]));
  for (const one of more.hosts) {
    const known = hosts.get(one.host);
    hosts.set(one.host, known === undefined ? one : { ...known, ...one, ...add(known, one) });
  }
  return topOf([...hosts.values()], add(before.others, more.others));
}

/** To all hosts together. */
export function totalsOf({ hosts, others }: EgressTraffic): EgressTotals {
  const { bytesSent, bytesReceived, refused } = hosts.reduce<Counted>(add, others);
  return { bytesSent, bytesReceived, refused };
}

export const noEgress: EgressTotals = { bytesSent: 0, bytesReceived: 0, refused: 0 };

export function addTotals(one: EgressTotals, other: EgressTotals): EgressTotals {
  return {
    bytesSent: one.bytesSent + other.bytesSent,
    bytesReceived: one.bytesReceived + other.bytesReceived,
    refused: one.refused + other.refused,
  };
}

/** A refusal counts as much as a megabyte: what was refused is looked for first. */
function weightOf({ bytesSent, bytesReceived, refused }: HostTraffic): number {
  return bytesSent + bytesReceived + refused * 1_000_000;
}

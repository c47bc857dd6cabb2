import type { ConnectionLimits } from './connections.ts';
import type { VncLimits } from '../vnc/vnc.ts';

/** Every bound of the gateway. */
export type GatewayLimits = ConnectionLimits &
  VncLimits & {
    /** For the session directory's answer. */
    lookupTimeoutMs: number;
    /** For the connection to a browser, and again for its first answer. */
    dialTimeoutMs: number;
  };

const MINUTE_MS = 60_000;

export const defaultLimits: GatewayLimits = {
  connections: 4_000, // two descriptors each: 8,000, with a common limit of 65,536 or more
  connectionsPerSession: 64, // a driver, some viewers, and one page socket a tab
  accessEveryMs: MINUTE_MS, // what `last_accessed_at` promises
  sweepMs: 1_000,
  // A session may wait for a person all day. A peer that vanished is found by keep-alive in half a
  // minute, or by TCP's retransmissions in a quarter of an hour where bytes were on their way to
  // it; this is for peers that stay and never say anything.
  idleMs: 24 * 60 * MINUTE_MS,
  stalledMs: 2 * MINUTE_MS, // a developer's breakpoint stops a client's reading, too
  bufferedBytesMax: 4 * 1024 * 1024, // one raw frame of 1280 × 800
  messageBytesMax: 1024 * 1024, // a pasted text; keys and clicks are a few bytes
  pingEveryMs: 20_000,
  lookupTimeoutMs: 5_000,
  dialTimeoutMs: 5_000,
};

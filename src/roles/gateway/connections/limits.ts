import type { ConnectionLimits } from './connections.ts';
import type { RequestLimits } from '../access/request-counter.ts';
import { bidiLimits, type BidiLimits } from '../bidi/bidi-processes.ts';
import type { VncLimits } from '../vnc/vnc.ts';

/** All limits of the gateway. */
export type GatewayLimits = ConnectionLimits &
  RequestLimits &
  VncLimits &
  BidiLimits & {
    /** Sockets of one address that are no connection to a browser (yet). */
    socketsPerAddress: number;
    /** Time-out of the session directory. */
    lookupTimeoutMs: number;
    /** Time-out of the connection to a browser, and again of its first answer. */
    dialTimeoutMs: number;
    /** Bytes of DevTools documents that clients have not taken yet; an organization has a third. */
    documentBytes: number;
    /** The longest silence of a client in the middle of a command's body. */
    bodySilentMs: number;
  };

const MINUTE_MS = 60_000;

export const defaultLimits: GatewayLimits = {
  connections: 4_000, // two descriptors each: 8,000, with a common limit of 65,536 or more
  connectionsPerOrganization: 1_000, // a quarter: three others still find as many places
  connectionsPerSession: 64, // a driver, some viewers, and one page socket a tab
  // DevTools' list of targets asks for two documents a second, a waiting viewer once for the state,
  // and a driver may open 64 page sockets at once: 20 a second is several of each.
  requestsPerTicket: 1_200,
  requestsPerOrganization: 12_000, // 200 a second are a tenth of a processor
  commandsPerTicket: 6_000, // a script that only reads attributes sends up to 100 a second
  commandsPerOrganization: 60_000,
  requestsPerAddress: 3_000, // a viewer loads 70 files, of which browsers keep copies for an hour
  socketsPerAddress: 500, // all sessions of the largest tier connected to at once, by one machine
  accessEveryMs: MINUTE_MS, // what `last_accessed_at` promises
  sweepMs: 1_000,
  // A session may wait for a person all day. A vanished peer is detected by keep-alive in half a
  // minute, or by TCP's retransmissions in a quarter of an hour if bytes were in flight. This limit
  // is for peers that stay connected and send nothing.
  idleMs: 24 * 60 * MINUTE_MS,
  stalledMs: 2 * MINUTE_MS, // a debugger's breakpoint also stops a client from reading
  bufferedBytesMax: 4 * 1024 * 1024, // one raw frame of 1280 × 800
  messageBytesMax: 2 * 1024 * 1024, // a pasted text has half; keys and clicks take a few bytes
  pingEveryMs: 20_000,
  bidiStartMs: 20_000, // 0.5 s, and ten times as long on a busy machine
  bidiSilentMs: 30_000, // it says that it runs every 2 s
  ...bidiLimits({ memoryBytes: Infinity, pids: Infinity }, 1), // compose knows the process's
  lookupTimeoutMs: 5_000,
  dialTimeoutMs: 5_000,
  documentBytes: 256 * 1024 * 1024, // for one organization ten of the largest
  bodySilentMs: 30_000,
};

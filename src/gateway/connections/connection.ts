import { performance } from 'node:perf_hooks';
import type { Ticket } from '../access/ticket.ts';
import { createWatch, type Flow, type Watch, type WatchLimits } from './idle-watch.ts';

/**
 * One client's hold on a session, from its admission to the close of both its sockets:
 *
 *     admitted ──spliced()──▶ spliced ──closed()──▶ gone
 *         └───────closed()─────────────────────────▶ gone
 *
 * In either state it may be ended from here (session over, gateway closing, idle, stalled):
 * `signal` is aborted, `endedBy` tells why, and whoever holds the sockets closes them and calls
 * `closed`.
 */
export type Connection = Readonly<Ticket> & {
  readonly signal: AbortSignal;
  /** Why it was ended, once it was. */
  readonly endedBy: string | null;
  /** Only the first reason counts. */
  end(reason: string): void;
  /** Bytes flow from now on. */
  spliced(flow: Flow): void;
  /** Both sockets are closed, or there never were two. Again is nothing. */
  closed(): void;
};

/** What a connection carried. */
export type ConnectionFact = {
  /** Why it was ended; null where the client or the browser closed it. */
  reason: string | null;
  /** From the client, and to it. */
  bytesIn: number;
  bytesOut: number;
  openMs: number;
};

/** A connection as its registry sees it. */
export type WatchedConnection = Connection & {
  /** Looks whether bytes moved since the last look; ends it where a limit is passed. */
  look(nowMs: number): 'moved' | 'still';
  bytes(): { fromClient: number; fromBrowser: number };
};

export function createConnection(
  ticket: Ticket,
  limits: WatchLimits,
  hooks: { onSpliced(nowMs: number): void; onClosed(fact: ConnectionFact | null): void },
): WatchedConnection {
  const controller = new AbortController();
  let endedBy: string | null = null;
  let isClosed = false;
  let watch: Watch | null = null;
  let splicedAtMs = 0;

  function end(reason: string): void {
    if (endedBy !== null) return;
    endedBy = reason;
    controller.abort();
  }

  return {
    ...ticket,
    signal: controller.signal,
    get endedBy() {
      return endedBy;
    },
    end,
    spliced(flow) {
      splicedAtMs = performance.now();
      watch = createWatch(flow, limits, splicedAtMs);
      hooks.onSpliced(splicedAtMs);
    },
    closed() {
      if (isClosed) return;
      isClosed = true;
      const bytes = watch?.bytes();
      hooks.onClosed(
        bytes === undefined
          ? null
          : {
              reason: endedBy,
              bytesIn: bytes.fromClient,
              bytesOut: bytes.fromBrowser,
              openMs: performance.now() - splicedAtMs,
            },
      );
    },
    look(nowMs) {
      const seen = watch?.look(nowMs) ?? 'still';
      if (typeof seen === 'string') return seen;
      end(seen.end);
      return 'still';
    },
    bytes: () => watch?.bytes() ?? { fromClient: 0, fromBrowser: 0 },
  };
}

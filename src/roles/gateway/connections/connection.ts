import { performance } from 'node:perf_hooks';
import type { Ticket } from '../access/ticket.ts';
import { createIdleWatch, type Flow, type IdleWatch, type IdleLimits } from './idle-watch.ts';

/**
 * One client's connection to a session, from its admission until both of its sockets are closed:
 *
 *     admitted ──spliced()──▶ spliced ──closed()──▶ gone
 *         └───────closed()─────────────────────────▶ gone
 *
 * In either state the gateway may end it (session over, gateway closing, idle, stalled): `signal`
 * aborts, `endedBy` is the reason, and the code that owns the sockets closes them and calls
 * `closed()`.
 */
export type Connection = Readonly<Ticket> & {
  readonly signal: AbortSignal;
  /** The reason passed to `end`; null: not ended. */
  readonly endedBy: string | null;
  /** Only the first reason counts. */
  end(reason: string): void;
  /** Ends it in so many ms, unless it is closed before. */
  endIn(ms: number, reason: string): void;
  /** From now on it never steers: it is that of a share which shows the screen alone. */
  onlyWatches(): void;
  /**
   * Whether its client steers the browser now. While a person holds the session, only that person's
   * connections to the screen do.
   */
  maySteer(): boolean;
  /** Calls the listener whenever `maySteer` may have changed; there is one listener. */
  onSteering(listener: () => void): void;
  /** Call it when bytes start to flow. */
  spliced(flow: Flow): void;
  /** Call it when both sockets are closed, or if there never were two. Idempotent. */
  closed(): void;
};

/** Summary of a closed connection. */
export type ConnectionSummary = {
  /** Why the gateway ended it; null: the client or the browser closed it. */
  reason: string | null;
  /** Bytes from the client. */
  bytesIn: number;
  /** Bytes to the client. */
  bytesOut: number;
  openMs: number;
};

/** A connection with the methods of its registry. */
export type MonitoredConnection = Connection & {
  /** Whether bytes moved since the last call; ends the connection if it exceeds a limit. */
  look(nowMs: number): 'moved' | 'still';
  bytes(): { fromClient: number; fromBrowser: number };
  /** Call it when a person took the session, or gave it back. */
  steeringChanged(): void;
};

type Hooks = {
  onSpliced(nowMs: number): void;
  onClosed(fact: ConnectionSummary | null): void;
  /** The session's hand-off that is taken; null: none. */
  heldBy(): string | null;
};

type Steered = Pick<
  MonitoredConnection,
  'onlyWatches' | 'maySteer' | 'onSteering' | 'steeringChanged'
>;

function createSteered({ grant }: Ticket, { heldBy }: Pick<Hooks, 'heldBy'>): Steered {
  let isWatching = false;
  let onSteering: (() => void) | null = null;
  return {
    onlyWatches() {
      isWatching = true;
    },
    maySteer() {
      const handoff = heldBy();
      const isThePersons = grant?.kind === 'handoff' && grant.id === handoff;
      return !isWatching && (handoff === null || isThePersons);
    },
    onSteering(listener) {
      onSteering = listener;
    },
    steeringChanged: () => onSteering?.(),
  };
}

/** The longest delay of a timer; no session lives for so long. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export function createConnection(
  ticket: Ticket,
  limits: IdleLimits,
  hooks: Hooks,
): MonitoredConnection {
  const controller = new AbortController();
  let endedBy: string | null = null;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  let watch: IdleWatch | null = null;
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
    endIn(ms, reason) {
      clearTimeout(timer);
      if (!isClosed) timer = setTimeout(() => end(reason), Math.min(ms, TIMER_MS_MAX)).unref();
    },
    ...createSteered(ticket, hooks),
    spliced(flow) {
      splicedAtMs = performance.now();
      watch = createIdleWatch(flow, limits, splicedAtMs);
      hooks.onSpliced(splicedAtMs);
    },
    closed() {
      if (isClosed) return;
      isClosed = true;
      clearTimeout(timer);
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

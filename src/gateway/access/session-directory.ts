/**
 * Port: looks up a session's browser. The gateway calls it at every connect and caches nothing.
 */

export type SessionLookup = {
  /** Tickets of a lower epoch are worthless; absent: none, like 0. */
  accessEpoch?: number;
} & (
  | {
      status: 'active';
      /** `path` is the browser's own WebSocket path, `/devtools/browser/<uuid>`. */
      cdp: { host: string; port: number; path: string };
      vnc: { host: string; port: number };
    }
  /** No browser yet: creating or queued. */
  | { status: 'waiting' }
  /** Stopping, stopped or failed, and why. */
  | { status: 'ended'; reason: string }
);

export type SessionDirectory = {
  /**
   * The session's current state; null: no such session. Rejects if the event store is unavailable.
   */
  find(organizationId: string, sessionId: string): Promise<SessionLookup | null>;
};

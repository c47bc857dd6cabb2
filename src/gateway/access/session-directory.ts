/**
 * Port: where a session's browser is. The gateway asks it at every connect and remembers nothing.
 */

export type SessionLookup =
  | {
      status: 'active';
      /** `path` is the browser's own WebSocket path, `/devtools/browser/<uuid>`. */
      cdp: { host: string; port: number; path: string };
      vnc: { host: string; port: number };
    }
  /** No browser yet: creating or queued. */
  | { status: 'waiting' }
  /** Stopping, stopped or failed, and why. */
  | { status: 'ended'; reason: string };

export type SessionDirectory = {
  /**
   * The session as it is now; null where there is none. May reject where the log is not reachable.
   */
  find(organizationId: string, sessionId: string): Promise<SessionLookup | null>;
};

import type { BrowserAddress } from '#src/browser-link/browser-link.ts';

/**
 * Port: looks up a session's browser. The gateway calls it at every connect and caches nothing.
 */

export type SessionLookup =
  | {
      status: 'active';
      /** `path` is the browser's own WebSocket path, `/devtools/browser/<uuid>`. */
      cdp: BrowserAddress & { path: string };
      vnc: BrowserAddress;
    }
  /** No browser yet: creating or queued. */
  | { status: 'waiting' }
  /** Stopping, stopped or failed, and why. */
  | { status: 'ended'; reason: string };

export type SessionDirectory = {
  /**
   * The session's current state; null: no such session. Rejects if the event store is unavailable.
   */
  find(organizationId: string, sessionId: string): Promise<SessionLookup | null>;
};

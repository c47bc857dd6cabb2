import type { Handoff } from '#events/handoff.ts';
import type { Share } from '#events/share.ts';
import type { BrowserAddress, DriverAddress } from '#src/browsers/link/browser-link.ts';

/** Port: looks up a session's browser. The gateway asks at every connect. */

export type SessionLookup = {
  /** Tickets of a lower epoch are worthless; absent: none, like 0. */
  accessEpoch?: number;
  /** Those that are not revoked; some may have expired. Absent: none. */
  shares?: readonly Pick<Share, 'id' | 'mode' | 'expiresAt'>[];
  /** The sequence of the event as of which this is; absent: unknown, older than any. */
  sequence?: number;
  /** The session's last hand-off. */
  handoff?: Pick<Handoff, 'id' | 'status' | 'expiresAt'>;
} & (
  | {
      status: 'active';
      /** `path` is the browser's own WebSocket path, `/devtools/browser/<uuid>`. */
      cdp: BrowserAddress & { path: string };
      /** null: the session is headless. */
      vnc: BrowserAddress | null;
      /** The WebDriver beside the browser; null or absent: there is none. */
      webdriver?: DriverAddress | null;
    }
  /** No browser yet. */
  | { status: 'creating' | 'queued' }
  /** Stopping, stopped or failed, and why. */
  | { status: 'ended'; reason: string }
);

export type SessionDirectory = {
  /**
   * The session's current state; null: no such session. Rejects if the event store is unavailable.
   * @param options.fromLeader ask the event store itself: what was believed has proved wrong
   */
  find(
    organizationId: string,
    sessionId: string,
    options?: { fromLeader?: boolean },
  ): Promise<SessionLookup | null>;
};

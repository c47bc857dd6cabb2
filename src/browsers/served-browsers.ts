import type { SessionIdentity } from '#src/kernel/domain/session/session.ts';
import type { RunningBrowser } from './browsers.ts';

/**
 * A browser of this server, as its optional parts see it.
 * Phases: launching → idle → busy → ending, or launching → busy; any → ending → removed.
 */
export type ServedBrowser = {
  readonly workloadId: string;
  phase: 'launching' | 'idle' | 'busy' | 'ending';
  /** Set once it has been launched. */
  browser: RunningBrowser | null;
  /** The session it serves; set while busy, and kept while ending. */
  session: SessionIdentity | null;
};

/** The browsers that this process is in charge of, by their workloads. */
export type ServedBrowsers = { get(workloadId: string): ServedBrowser | null };

/** What BrowserArena's harness expects of a provider, and what it records: its own names. */

export type ArenaSession = { id: string; cdpUrl: string };

export type ArenaProvider = {
  readonly name: string;
  /** US dollars; only its other benchmark asks. */
  computeCost(seconds: number): number;
  create(): Promise<ArenaSession>;
  release(id: string): Promise<void>;
};

/** One session, in milliseconds; null: the session did not get so far. */
export type ArenaRecord = {
  session_creation_ms: number | null;
  session_connect_ms: number | null;
  page_goto_ms: number | null;
  session_release_ms: number | null;
  success: boolean;
  error_stage: string | null;
  error_message: string | null;
};

/** The part of its module `src/benchmarks/hello-browser/run.ts` that runs the sessions. */
export type ArenaHarness = {
  /** `runs` batches of `concurrency` sessions, after ten that are not recorded. */
  runLoop(
    provider: ArenaProvider,
    options: { runs: number; url: string; out: string; concurrency: number },
  ): Promise<void>;
};

/** What a task that runs in this process has to say of itself. */
export type TaskStatus<Result> = {
  state: 'running' | 'done' | 'failed';
  startedAt: string;
  endedAt: string | null;
  /** Sequences that are read, and the last one to read; null: not known yet. */
  progress: { done: number; of: number } | null;
  result: Result | null;
  /** Why it failed; null: it did not. */
  failure: string | null;
};

type Work<Result> = (
  report: (done: number, of: number) => void,
  signal: AbortSignal,
) => Promise<Result>;

/**
 * Long work of operators, one at a time in this process, apart from requests. What the last one
 * found is kept until the next one starts; a restart of the process ends and forgets it.
 */
export function createBackgroundTask<Result>(now: () => number) {
  let last: { name: string; status: TaskStatus<Result> } | null = null;
  const time = () => new Date(now()).toISOString();
  return {
    last: () => last,
    /** False: one is running. */
    start(name: string, work: Work<Result>, ending: AbortSignal): boolean {
      if (last?.status.state === 'running') return false;
      const status: TaskStatus<Result> = {
        state: 'running',
        startedAt: time(),
        endedAt: null,
        progress: null,
        result: null,
        failure: null,
      };
      last = { name, status };
      const report = (done: number, of: number) => (status.progress = { done, of });
      const end = (changes: Partial<TaskStatus<Result>>) =>
        Object.assign(status, { endedAt: time() }, changes);
      void work(report, ending).then(
        (result) => end({ state: 'done', result }),
        (error: unknown) => end({ state: 'failed', failure: String(error) }),
      );
      return true;
    },
  };
}

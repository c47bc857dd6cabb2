import type { BrowserExit } from './browsers.ts';

/** What an adapter keeps of a browser that this process launches, has launched or has adopted. */
export type OwnBrowser = {
  /** Aborted once the browser is being stopped, or its end is being reported. */
  readonly stopped: AbortController;
  /** Settles when the launch has ended, either way. */
  readonly launching: Promise<unknown>;
  /** The session that `assign` has given, for `list`. */
  sessionId: string | null;
  /** Set while the browser is being removed. */
  removal: Promise<void> | null;
};

/** The browsers of an adapter by workload id; stopping works the same for all adapters. */
export class OwnBrowsers<Own extends OwnBrowser> {
  readonly #byWorkload = new Map<string, Own>();
  readonly #listeners: ((exit: BrowserExit) => void)[] = [];
  readonly #remove: (own: Own, workloadId: string) => Promise<void>;
  #isClosed = false;

  /**
   * @param remove ends everything of a browser, and what a failed launch may have left; rejects
   * where some of it is still there
   */
  constructor(remove: (own: Own, workloadId: string) => Promise<void>) {
    this.#remove = remove;
  }

  /** @throws Error where the workload has a browser already, or the adapter is closed */
  assertCanLaunch(workloadId: string): void {
    if (this.#isClosed) throw new Error('launch after dispose');
    if (this.#byWorkload.has(workloadId))
      throw new Error(`workload ${workloadId} already has a browser`);
  }

  set(workloadId: string, own: Own): void {
    this.#byWorkload.set(workloadId, own);
  }

  get(workloadId: string): Own | undefined {
    return this.#byWorkload.get(workloadId);
  }

  delete(workloadId: string): void {
    this.#byWorkload.delete(workloadId);
  }

  entries(): [workloadId: string, own: Own][] {
    return [...this.#byWorkload];
  }

  /** Calls the listener for each browser that ends without a stop. */
  onExit(listener: (exit: BrowserExit) => void): void {
    this.#listeners.push(listener);
  }

  reportExit(exit: BrowserExit): void {
    for (const listener of this.#listeners) listener(exit);
  }

  /** Cancels the launch or removes the browser. @throws where something of it is left */
  async stop(workloadId: string, own: Own): Promise<void> {
    own.stopped.abort(new Error('stopped during the launch'));
    // The launch's caller gets its error.
    await own.launching.catch(() => {});
    await this.remove(workloadId, own);
  }

  /** Removes the browser once for all callers; after a failure the next call tries again. */
  async remove(workloadId: string, own: Own): Promise<void> {
    own.removal ??= this.#remove(own, workloadId).then(() => this.delete(workloadId));
    try {
      await own.removal;
    } catch (error) {
      own.removal = null;
      throw error;
    }
  }

  /**
   * Removes what is left of a browser that has ended by itself.
   * @returns a line for the exit's detail if that failed, else ''; the browser stays listed then
   */
  async removeAfterExit(workloadId: string, own: Own): Promise<string> {
    try {
      await this.remove(workloadId, own);
      return '';
    } catch (error) {
      return `\n${String(error)}`;
    }
  }

  /**
   * Refuses further launches and stops the browsers, all of them by default.
   * @throws AggregateError where some could not be stopped
   */
  async close(mustStop: (own: Own) => boolean = () => true): Promise<void> {
    this.#isClosed = true;
    const stopping = this.entries().filter(([, own]) => mustStop(own));
    const ends = await Promise.allSettled(stopping.map(([id, own]) => this.stop(id, own)));
    const failures = ends.filter((end) => end.status === 'rejected').map((end) => end.reason);
    if (failures.length > 0) throw new AggregateError(failures, 'failed to stop browsers');
  }
}

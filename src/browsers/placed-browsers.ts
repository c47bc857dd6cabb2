import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { EgressEndpoint } from './egress-endpoint.ts';
import { createAvailability, type Availability } from './availability.ts';
import type { BrowserBuild, BrowserExit, BrowserFolders, Browsers } from './browsers.ts';
import type { BrowserSpec, ObservedBrowser, RunningBrowser } from './browsers.ts';
import { closeBrowser } from './chromium/close.ts';
import { isClose } from './chromium/closed.ts';
import { OwnBrowsers } from './own-browsers.ts';
import type { KnownPlace, Place, PlacedBrowser, PlaceEnd, PlaceEngine } from './place-engine.ts';
import { serveEgress } from './relay-connections.ts';

export type PlacedOptions = {
  /** The longest duration of a launch. */
  launchTimeoutMs: number;
  log: Pick<Logger, 'warn'>;
};

/** 128 + SIGKILL: the exit code where the kernel has killed Chromium itself. */
const KILLED = 137;

/**
 * Browsers in containers or Pods, one browser in each. These outlive this process; the next one
 * finds them by their labels. What their engines do is in docker/ and kubernetes/.
 */
export class PlacedBrowsers<P extends Place, End> implements Browsers {
  readonly kind: Browsers['kind'];
  readonly folders: BrowserFolders;
  readonly onBuild?: NonNullable<Browsers['onBuild']>;
  readonly storedBytes?: NonNullable<Browsers['storedBytes']>;
  /** What its engine knows of its browsers. */
  readonly own = new OwnBrowsers<PlacedBrowser<P, End>>(({ launched }, workloadId) =>
    this.#engine.remove(workloadId, launched),
  );
  /** Its engine tells when it is away, and when it answers again. */
  readonly availability: Availability;
  readonly log: Pick<Logger, 'warn'>;
  readonly #engine: PlaceEngine<P, End>;
  readonly #launchTimeoutMs: number;
  readonly #ending = new DisposableStack();
  #watcher: Awaited<ReturnType<PlaceEngine<P, End>['watch']>> | null = null;

  /** @param engineFor the engine that tells these browsers of what happens to them */
  constructor(
    engineFor: (browsers: PlacedBrowsers<P, End>) => PlaceEngine<P, End>,
    { launchTimeoutMs, log }: PlacedOptions,
  ) {
    const engine = engineFor(this);
    const { kind, folders, image, guard, checkEveryMs } = engine;
    this.#engine = engine;
    this.#launchTimeoutMs = launchTimeoutMs;
    this.log = log;
    this.availability = createAvailability(guard, log, checkEveryMs);
    this.kind = kind;
    this.folders = folders;
    if (image.onChange !== undefined) this.onBuild = (listener) => image.onChange?.(listener);
    if (engine.profileBytes !== undefined)
      this.storedBytes = async (workloadId) => {
        const own = this.own.get(workloadId);
        // Without a profile all of it is in the container's memory.
        if (own?.keepsProfile !== true || own.launched === null) return null;
        return (await engine.profileBytes?.(own.launched)) ?? null;
      };
  }

  /** Of browsers that are launched from now on. */
  get egress(): 'network' | undefined {
    return this.#engine.image.now().hasRelay ? 'network' : undefined;
  }

  build(): BrowserBuild {
    const { version, builtAt } = this.#engine.image.now();
    return { version, builtAt };
  }

  isOutdated(workloadId: string): boolean {
    const own = this.own.get(workloadId);
    return own !== undefined && own.image !== this.#engine.image.now().id;
  }

  /** Disposes of it when the browsers end. */
  ends(part: Disposable): void {
    this.#ending.use(part);
  }

  /** Begins to follow the engine. */
  async watch(): Promise<this> {
    this.#watcher = await this.#engine.watch();
    return this;
  }

  async launch(spec: BrowserSpec): Promise<RunningBrowser> {
    const { workloadId, profile } = spec;
    this.own.assertCanLaunch(workloadId);
    const stopped = new AbortController();
    const bounds = { timeoutMs: this.#launchTimeoutMs, stopped: stopped.signal };
    const launching = this.#engine.launch(spec, bounds);
    const { id: image } = this.#engine.image.now();
    const begun = { launched: null, sessionId: null, image, keepsProfile: profile !== undefined };
    const own = this.#add(workloadId, begun, { launching, stopped });
    try {
      const launched = await launching;
      own.launched = launched;
      serveEgress(launched, spec.egress, stopped.signal);
      if (own.exit !== null) this.handleExit(workloadId, own, own.exit);
      return launched.browser;
    } catch (error) {
      this.own.delete(workloadId);
      if (!stopped.signal.aborted) await this.checkEngine();
      throw error;
    }
  }

  async stop(workloadId: string): Promise<void> {
    const own = this.own.get(workloadId);
    // Also what a failed launch or an earlier process has left.
    if (own === undefined) await this.#engine.remove(workloadId, null);
    else await this.own.stop(workloadId, own);
  }

  async close(workloadId: string, withinMs: number): Promise<boolean> {
    const own = this.own.get(workloadId);
    if (own === undefined || own.launched === null) return false;
    const { browser } = own.launched;
    return (await closeBrowser(browser, own.ended.promise, withinMs)) === 'browser_closed';
  }

  readProfile(workloadId: string, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const own = this.own.get(workloadId);
    if (own?.keepsProfile !== true || own.launched === null)
      throw new Error(`${workloadId} has no profile here`);
    return this.#engine.readProfile(own.launched, own.exit !== null, signal);
  }

  async list(): Promise<ObservedBrowser[]> {
    const listed = await this.#engine.list();
    const ids = new Set(listed.map(({ workloadId }) => workloadId));
    const observed = await Promise.all(
      listed.map(async ({ workloadId, sessionId, look }) => {
        const own = this.own.get(workloadId);
        return own === undefined
          ? { workloadId, sessionId, ...(await look()) }
          : { workloadId, sessionId: own.sessionId ?? sessionId, adoptable: runningOf(own) };
      }),
    );
    const launching = this.own.entries().filter(([workloadId]) => !ids.has(workloadId));
    const none = { sessionId: null, adoptable: null };
    return [...observed, ...launching.map(([workloadId]) => ({ workloadId, ...none }))];
  }

  async assign(workloadId: string, sessionId: string): Promise<void> {
    const own = this.own.get(workloadId);
    if (own === undefined || own.launched === null) return;
    const before = own.sessionId;
    own.sessionId = sessionId;
    await this.#engine.label(own.launched, sessionId, before);
  }

  async memoryUsed(workloadId: string): Promise<number | null> {
    const launched = this.own.get(workloadId)?.launched ?? null;
    return launched === null ? null : this.#engine.memoryUsed(launched);
  }

  async adopt(workloadId: string, egress?: EgressEndpoint): Promise<RunningBrowser | null> {
    const known = this.own.get(workloadId);
    if (known !== undefined) return runningOf(known);
    const found = await this.#engine.find(workloadId, egress !== undefined);
    if (found === null) return null;
    const { launched } = found.place;
    const stopped = new AbortController();
    const own = this.#add(workloadId, found.place, { launching: Promise.resolve(), stopped });
    serveEgress(launched, egress, stopped.signal);
    await found.catchUp(own);
    // One that has just ended is adopted too: its end follows.
    return this.own.get(workloadId) === undefined ? null : launched.browser;
  }

  onExit(listener: (exit: BrowserExit) => void): void {
    this.own.onExit(listener);
  }

  onAvailable(listener: (isAvailable: boolean) => void): void {
    this.availability.onChange(listener);
  }

  async leave(): Promise<void> {
    await this.#close(({ launched, removal }) => launched === null || removal !== null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close(() => true);
  }

  /** Its engine tells of an end: what it tells first counts. */
  handleExit(workloadId: string, own: PlacedBrowser<P, End>, exit: End): void {
    own.exit ??= exit;
    if (own.launched === null || own.stopped.signal.aborted) return;
    // From here on it counts as stopped, so that its exit is reported once.
    own.stopped.abort();
    this.#reportExit(workloadId, own, own.launched, own.exit).catch((error: unknown) =>
      this.log.warn({ err: error, workloadId }, 'failed to report the end of a browser'),
    );
  }

  /** After a failure: reports a lost engine at once, since what it tells may lag. */
  async checkEngine(): Promise<void> {
    if (await this.#engine.isAnswering()) return;
    this.availability.engineLost();
    this.#watcher?.reconnect();
  }

  #add(
    workloadId: string,
    place: KnownPlace<P | null>,
    begun: Pick<PlacedBrowser<P, End>, 'launching' | 'stopped'>,
  ): PlacedBrowser<P, End> {
    const ended: PlacedBrowser<P, End>['ended'] = Promise.withResolvers();
    const own = { ...place, ...begun, ended, removal: null, exit: null };
    this.own.set(workloadId, own);
    return own;
  }

  /** Reports an end without a stop, after the rest of the browser has been removed. */
  async #reportExit(
    workloadId: string,
    own: PlacedBrowser<P, End>,
    place: P,
    exit: End,
  ): Promise<void> {
    const end = await this.#engine.explain(own, place, exit);
    const { exitCode, endedAt, output, told } = end;
    const reason = reasonOf(end);
    const hasProfile = reason === 'browser_closed' && own.keepsProfile;
    const unfinished = hasProfile ? '' : await this.own.removeAfterExit(workloadId, own);
    own.ended.resolve(reason);
    this.own.reportExit({
      workloadId,
      reason,
      exitCode,
      endedAt,
      // The kernel kills for lack of memory once all that a container may use is in use.
      ...(reason === 'out_of_memory' && { memoryPeakBytes: this.#engine.memoryBytes }),
      ...(hasProfile && { hasProfile }),
      detail: [output, told].filter(Boolean).join('\n') + unfinished,
    });
  }

  async #close(mustStop: (own: PlacedBrowser<P, End>) => boolean): Promise<void> {
    try {
      await this.own.close(mustStop);
    } finally {
      this.#ending.dispose();
      this.availability[Symbol.dispose]();
      await this.#watcher?.[Symbol.asyncDispose]();
    }
  }
}

/** Null for a browser that is being launched, or stopped: it cannot be adopted. */
function runningOf(own: PlacedBrowser<Place, unknown>): RunningBrowser | null {
  return own.stopped.signal.aborted ? null : (own.launched?.browser ?? null);
}

function reasonOf({ exitCode, output, isMemoryKill }: PlaceEnd): BrowserExit['reason'] {
  if (isClose(exitCode, output)) return 'browser_closed';
  // The kernel's kill of a page's process ends no browser; a kill of Chromium does.
  return isMemoryKill && exitCode === KILLED ? 'out_of_memory' : 'browser_crashed';
}

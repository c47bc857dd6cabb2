/**
 * Port: the browsers of one server. Adapters: browsers.docker.ts, browsers.process.ts,
 * browsers.simulated.ts.
 * A browser belongs to one workload and is used once; its stop destroys everything of it.
 */

/** Where a part of a browser listens; reachable from the gateway, never given to clients. */
export type Endpoint = { host: string; port: number };

/** What a workload is asked to be. */
export type BrowserSpec = {
  workloadId: string;
  /** RFB password: exactly 8 characters of [A-Za-z0-9] (VncAuth reads no more). */
  vncPassword: string;
  /** Display and window size in pixels. */
  screen: { width: number; height: number };
  /** True: without a display, and so without VNC; absent: on one. */
  headless?: boolean;
  /** BCP 47, for pages and the browser's own words; absent: the machine's. */
  locale?: string;
  /** IANA name; absent: the machine's. */
  timezone?: string;
};

/**
 * A browser that answers: CDP has replied to a command, a page is open, VNC takes connections (of a
 * headless one nobody does, at whatever `vnc` says).
 */
export type RunningBrowser = {
  workloadId: string;
  /** `path` is the browser's own WebSocket path, `/devtools/browser/<uuid>`. */
  cdp: Endpoint & { path: string };
  vnc: Endpoint;
};

/** The end of a browser without `stop`. */
export type BrowserExit = {
  workloadId: string;
  /** `browser_closed`: by its user, with CDP's Browser.close or the browser's own menu. */
  reason: 'browser_closed' | 'browser_crashed' | 'out_of_memory';
  exitCode: number | null;
  /** Milliseconds since the epoch; where the end was found later, when it was if that is known. */
  endedAt: number;
  /** The last lines of the browser's stderr, at most 2 KiB; for the log and the event. */
  detail: string;
};

/** What is found on this server, whoever started it. */
export type ObservedBrowser = {
  workloadId: string;
  /**
   * Whose it is, as `assign` was told; null: nobody's yet. What ends with the service forgets it.
   */
  sessionId: string | null;
  /**
   * Set where the running browser can be taken over by this process; null: it can only be stopped.
   */
  adoptable: RunningBrowser | null;
  /**
   * When its user closed it, in milliseconds since the epoch, where that is known of one that has
   * ended and was not launched or adopted here.
   */
  closedAt?: number;
};

export type Browsers = {
  readonly kind: 'docker' | 'process' | 'simulated';
  /**
   * Starts a browser and resolves once it is ready to be handed to a client.
   * @throws LaunchFailed when it does not get there within the adapter's bound; nothing of it is
   * left then.
   */
  launch(spec: BrowserSpec): Promise<RunningBrowser>;
  /**
   * Ends a browser; resolves when no process of it is left. A workload that is not there is a
   * success.
   */
  stop(workloadId: string): Promise<void>;
  /** Everything of ours that runs on this server, leftovers of an earlier process included. */
  list(): Promise<ObservedBrowser[]>;
  /**
   * Notes on the browser itself whose it is now, for `list` and for whoever looks at the machine.
   * A workload that is not there is left alone.
   */
  assign(workloadId: string, sessionId: string): Promise<void>;
  /**
   * Takes over a browser that `list` gave as adoptable: from here on it is as if this process had
   * launched it. Null where it has ended since or cannot be taken over.
   */
  adopt(workloadId: string): Promise<RunningBrowser | null>;
  /**
   * Calls the listener for each browser launched or adopted here that ends without `stop`, at most
   * once a workload.
   */
  onExit(listener: (exit: BrowserExit) => void): void;
  /**
   * Calls the listener when nothing can be launched or ended here any more (false), and when it can
   * again (true): the ends of meanwhile have been told by then. Absent where that does not happen.
   */
  onAvailable?(listener: (isAvailable: boolean) => void): void;
  /**
   * Instead of disposing: what is being launched or ended is seen to its end, and the rest runs on
   * for the next process to adopt. Absent where browsers end with their process.
   */
  leave?(): Promise<void>;
} & AsyncDisposable;

/** A browser that did not become ready. */
export class LaunchFailed extends Error {
  override readonly name = 'LaunchFailed';
  /** The last lines of what the browser said, at most 2 KiB. */
  readonly detail: string;
  constructor(message: string, detail: string) {
    super(message);
    this.detail = detail;
  }
}

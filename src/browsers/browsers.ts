import type { EgressEnforcement } from '#events/egress.ts';
import type { Geolocation } from '#events/session.ts';
import type { BrowserAddress } from '#src/browsers/link/browser-link.ts';
import type { EgressEndpoint } from './egress-endpoint.ts';
import type { ExtensionSource } from './extensions/extension-source.ts';

/**
 * Port: the browsers of one server. Adapters: docker/, kubernetes/, process/,
 * simulated/.
 * A workload is a browser in the log. A browser belongs to one workload and serves one session; its
 * stop destroys everything of it.
 */

/** The address of a browser's socket: reachable from the gateway, never given to clients. */
export type Endpoint = { host: string; port: number };

/** What to launch. */
export type BrowserSpec = {
  workloadId: string;
  /** RFB password: exactly 8 characters of [A-Za-z0-9]; VncAuth reads no more. */
  vncPassword: string;
  /** Display and window size in pixels. */
  screen: { width: number; height: number };
  /** True: without a display, and so without VNC; absent: with a display. */
  headless?: boolean;
  /** Language, script, region, as browsers write them: of pages and workers; absent: the host's. */
  locale?: string;
  /** IANA name; absent: the host's. */
  timezone?: string;
  /** What it is launched with, unpacked where only it reads them; absent: none. */
  extensions?: readonly ExtensionSource[];
  /** The proxy that is its only way out; absent: it reaches what its network reaches. */
  egress?: EgressEndpoint;
  /** In place of Chromium's own. */
  userAgent?: string;
  /** Where the browser says it is: degrees, and metres; in place by CDP. */
  geolocation?: Geolocation;
  /** Granted to all pages, by their names in the Permissions API; in place by CDP. */
  permissions?: readonly string[];
  /** The profile that it begins with, and may leave; absent: a new one that is thrown away. */
  profile?: ProfileSpec;
};

export type ProfileSpec = {
  /**
   * A tar of the profile's folder, pulled while the browser's other programs start; null: an empty
   * profile.
   */
  tar: AsyncIterable<Uint8Array> | null;
  /**
   * True: once its user or `close` has closed the browser, the folder stays until `stop`, and can
   * be read.
   */
  isKept: boolean;
};

/**
 * A browser that is ready: CDP has answered a command, a page is open, VNC accepts connections. For
 * a headless browser `vnc` has no meaning.
 */
export type RunningBrowser = {
  workloadId: string;
  /** `path` is the browser's own WebSocket path, `/devtools/browser/<uuid>`. */
  cdp: BrowserAddress & { path: string };
  vnc: BrowserAddress;
  /**
   * The WebDriver beside it, which is started by its first connection; it finds the browser at
   * `cdpPort` of its own loopback. Absent: there is none.
   */
  webdriver?: Endpoint & { cdpPort: number };
};

/** The end of a browser without a `stop`. */
export type BrowserExit = {
  workloadId: string;
  /**
   * `browser_closed`: by its user, with CDP's Browser.close or the browser's menu.
   * `storage_exceeded`: it stored more than it may; no adapter tells that.
   */
  reason: 'browser_closed' | 'browser_crashed' | 'out_of_memory' | 'storage_exceeded';
  exitCode: number | null;
  /** The signal that ended its process, as `SIGKILL`, if the adapter saw it. */
  signal?: string;
  /** The most memory that it used, if the adapter knows. */
  memoryPeakBytes?: number;
  /**
   * Milliseconds since the epoch: the time of the end, or of its discovery if that is not known.
   */
  endedAt: number;
  /** The last lines of the browser's stderr, at most 2 KiB, for the log and the event. */
  detail: string;
  /** True: its profile can be read, and the browser is listed, until it is stopped. */
  hasProfile?: boolean;
};

/** What a server launches browsers from: the program and its age. */
export type BrowserBuild = {
  /** Chromium's version, as `150.0.7871.100`; `unknown`; `simulated` for simulated browsers. */
  version: string;
  /**
   * When the image's packages were installed, or the program was built: milliseconds since the
   * epoch. Null: unknown.
   */
  builtAt: number | null;
};

/** A browser on this server, of this process or of an earlier one. */
export type ObservedBrowser = {
  workloadId: string;
  /**
   * The session it was assigned to; null: none yet, or unknown to an adapter whose browsers end
   * with the service.
   */
  sessionId: string | null;
  /**
   * Set where this process can adopt the running browser; null: it can only be stopped.
   */
  adoptable: RunningBrowser | null;
  /**
   * Milliseconds since the epoch. Set for an ended browser of an earlier process that its user has
   * closed, if that is known.
   */
  closedAt?: number;
};

/** A file as it is read or written: its length, and its bytes as they are pulled. */
export type FolderFile = { bytes: number; body: AsyncIterable<Uint8Array> };

/**
 * A file that is read. Its reader disposes of it whether or not its bytes were taken: until then a
 * Docker engine keeps the container locked, for every other request too.
 */
export type OpenedFile = FolderFile & AsyncDisposable;

/**
 * The folder that each browser has for its session's files, as the browser's user sees it:
 * `DOWNLOADS_FOLDER` in the working folder of its process. It ends with the browser. Every method
 * throws FolderGone where the browser is not there (any more), and is bounded by its signal. `name`
 * is a safe name: no method follows a link, or leaves the folder.
 */
export type BrowserFolders = {
  /** Where a file of the folder is in the browser's own file system. */
  path(workloadId: string, name: string): string;
  /** Null: there is no file of the name. */
  read(workloadId: string, name: string, signal: AbortSignal): Promise<OpenedFile | null>;
  /** Writes a whole file, or none where the body fails; replaces one of the same name. */
  write(workloadId: string, name: string, file: FolderFile, signal: AbortSignal): Promise<void>;
  /** Renames a file; replaces one of the new name. False: there is none of the old one. */
  rename(workloadId: string, from: string, to: string, signal: AbortSignal): Promise<boolean>;
  /** Removes a file; it may be missing. */
  remove(workloadId: string, name: string, signal: AbortSignal): Promise<void>;
};

/** The browser of a folder has ended. */
export class FolderGone extends Error {
  override readonly name = 'FolderGone';
}

export type Browsers = {
  readonly kind: 'docker' | 'kubernetes' | 'process' | 'simulated';
  /**
   * How it holds a browser to the proxy of its `egress`. Absent: it cannot, and refuses to launch
   * such a browser. It may change with `build()`.
   */
  readonly egress?: EgressEnforcement | undefined;
  /** The folders for the files of their sessions. */
  readonly folders: BrowserFolders;
  /** What new browsers are launched from. */
  build(): BrowserBuild;
  /** Calls the listener after each change of `build()`. Absent where it never changes. */
  onBuild?(listener: () => void): void;
  /**
   * Whether a browser of this process was launched from an earlier build than the present one.
   * Absent where `build()` never changes.
   */
  isOutdated?(workloadId: string): boolean;
  /**
   * Starts a browser and resolves once it is ready for a client.
   * @throws LaunchFailed if it is not ready within the adapter's time limit; everything of it is
   * removed then
   */
  launch(spec: BrowserSpec): Promise<RunningBrowser>;
  /**
   * Ends a browser; resolves when none of its processes is left. Succeeds for an unknown workload.
   */
  stop(workloadId: string): Promise<void>;
  /**
   * Closes a browser of this process whose profile is kept, as its user would: it writes what it
   * has in memory. @returns false if it was not closed within the time, or has ended otherwise
   */
  close(workloadId: string, withinMs: number): Promise<boolean>;
  /**
   * A tar of the profile of a browser that was launched with one, without caches: of one that was
   * closed and not stopped yet, or of one that runs. That one stands still while it is read, and
   * goes on at the latest when the signal aborts; what it has in memory alone is missing.
   * @throws Error if there is none; while it is read, if it cannot be read to its end
   */
  readProfile(workloadId: string, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** All browsers of the service on this server, including those that an earlier process left. */
  list(): Promise<ObservedBrowser[]>;
  /**
   * Labels the browser with its session, for `list` and for operators. Ignores an unknown workload.
   */
  assign(workloadId: string, sessionId: string): Promise<void>;
  /**
   * Adopts a browser that `list` returned as adoptable: from then on it counts as launched by this
   * process. Null if it has ended since or cannot be adopted.
   * @param egress the proxy of a browser that was launched with one
   * @param launchedWith what its session asked for, for what is in place by CDP; absent: no session
   */
  adopt(
    workloadId: string,
    egress?: EgressEndpoint,
    launchedWith?: BrowserSpec,
  ): Promise<RunningBrowser | null>;
  /**
   * Bytes of memory that a browser uses, or the most that it has used where the system counts that;
   * null: it is not known here. Absent where browsers use none of their own.
   * @throws Error if that cannot be read
   */
  memoryUsed?(workloadId: string): Promise<number | null>;
  /**
   * Bytes that a browser stores on the server's disk, downloads aside; null: it is not known here,
   * or the system bounds it. Absent where the system bounds it for all.
   * @throws Error if that cannot be read
   */
  storedBytes?(workloadId: string): Promise<number | null>;
  /**
   * Calls the listener for each browser of this process that ends without `stop`, at most once per
   * workload.
   */
  onExit(listener: (exit: BrowserExit) => void): void;
  /**
   * Calls the listener when browsers can no longer be launched or ended (false), and when they can
   * again (true), after the exits of that time have been reported. Absent if that cannot happen.
   */
  onAvailable?(listener: (isAvailable: boolean) => void): void;
  /**
   * Instead of disposing: finishes launches and stops under way and leaves the other browsers for
   * the next process to adopt. Absent where browsers end with their process.
   */
  leave?(): Promise<void>;
} & AsyncDisposable;

/** A browser did not become ready. */
export class LaunchFailed extends Error {
  override readonly name = 'LaunchFailed';
  /** The last lines of the browser's output, at most 2 KiB. */
  readonly detail: string;
  constructor(message: string, detail: string) {
    super(message);
    this.detail = detail;
  }
}

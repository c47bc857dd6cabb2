import type { BrowserSpec } from '../browsers.ts';

/**
 * Port: what is done with each running browser by CDP for as long as it runs. Parts share one
 * connection of the provisioner to the browser.
 */
export type ObserverPart = {
  /** For the log. */
  name: string;
  /**
   * Called for each connection: one after the launch or the adoption, another one if that is lost.
   * What it returns is awaited, with a bound, before a launched browser gets a session.
   */
  attached?: (browser: ObservedBrowserConnection) => void | Promise<void>;
  /** How long a launch waits for this part at most, if that is longer than 1 s. */
  awaitedMs?: (launchedWith: BrowserSpec | null) => number;
  /** Absent: this part needs no targets. */
  pages?: {
    /** `page` alone by default; the others cost a CDP session for each iframe or worker. */
    types?: readonly TargetType[];
    /** Called for each target of these types; awaited for those of the start. */
    attached: (target: ObservedTarget) => void | Promise<void>;
    /**
     * True: no script of a new page of this browser runs before `attached` is done, or 2 s have
     * passed.
     */
    holds?: (browser: ObservedBrowserConnection) => boolean;
  };
};

/** The kinds of targets that parts can ask for. */
export type TargetType = 'page' | 'iframe' | 'worker';

export type EventListener = (params: Record<string, unknown>) => void;

type Observed = {
  readonly workloadId: string;
  /** Calls the listener for each event of this name, as long as the connection lasts. */
  on: (event: string, listener: EventListener) => void;
  /** Aborts when the connection, or the target, has ended. */
  readonly closed: AbortSignal;
};

/** The provisioner's connection to one browser; its events are those of the browser itself. */
export type ObservedBrowserConnection = Observed & {
  /** What the browser was launched with; null: it was adopted without a session. */
  readonly launchedWith: BrowserSpec | null;
  /**
   * @param sessionId the CDP session of a target; absent: the browser itself
   * @throws Error if the browser refuses, has gone, or has not answered within 2 s
   */
  send: <Result = unknown>(method: string, params?: object, sessionId?: string) => Promise<Result>;
};

/** A page, iframe or worker of an observed browser; `url` is that of the moment of attaching. */
export type ObservedTarget = Observed & {
  readonly browser: ObservedBrowserConnection;
  readonly targetId: string;
  readonly type: TargetType;
  readonly url: string;
  readonly sessionId: string;
  /** @throws Error if the browser refuses, has gone, or has not answered within 2 s */
  send: <Result = unknown>(method: string, params?: object) => Promise<Result>;
};

import type { BrowserAddress } from '#src/browsers/link/browser-link.ts';
import type { IsolationCheck } from './availability.ts';
import type { BrowserBuild, BrowserExit, BrowserFolders, Browsers } from './browsers.ts';
import type { BrowserSpec, ObservedBrowser, RunningBrowser } from './browsers.ts';
import type { OwnBrowser } from './own-browsers.ts';

/** A browser's container or Pod. */
export type Place = {
  browser: RunningBrowser;
  /** Where the browser's proxy is served; null: it was launched without one. */
  egress: BrowserAddress | null;
};

/** What is known of a place; `P` is null while it is being launched. */
export type KnownPlace<P extends Place | null> = {
  launched: P;
  /** The session that its browser is assigned to. */
  sessionId: string | null;
  /** The image that it runs from. */
  image: string;
  /** Whether its profile is read after its close: then it is removed by its stop alone. */
  keepsProfile: boolean;
};

/** A browser that this process launches, has launched or has adopted. */
export type PlacedBrowser<P extends Place, End> = OwnBrowser &
  KnownPlace<P | null> & {
    /** Set where its place has ended, even before `launched` is set. */
    exit: End | null;
    /** Resolves when it has ended without a stop. */
    ended: PromiseWithResolvers<BrowserExit['reason']>;
  };

/** A place as the engine lists it, running or ended. */
export type ListedPlace = {
  workloadId: string;
  sessionId: string | null;
  /** Whether its browser can be adopted, or when it was closed: of one that is not known here. */
  look: () => Promise<Pick<ObservedBrowser, 'adoptable' | 'closedAt'>>;
};

/** The place of an earlier process' browser. */
export type FoundPlace<P extends Place, End> = {
  place: KnownPlace<P>;
  /** Tells of an end that came before the browser was known here. */
  catchUp: (own: PlacedBrowser<P, End>) => Promise<void> | void;
};

/** How a browser has ended, by its place. */
export type PlaceEnd = Pick<BrowserExit, 'exitCode' | 'endedAt'> & {
  /** Whether the kernel has killed a program of it for lack of memory. */
  isMemoryKill: boolean;
  /** The last lines of the browser's output. */
  output: string;
  /** What the engine itself tells of the end; empty: nothing. */
  told: string;
};

/** What runs containers or Pods; `End` is what it sees of the end of one. */
export type PlaceEngine<P extends Place, End> = {
  readonly kind: Browsers['kind'];
  /** Also of a browser that has ended, as long as its place is there. */
  readonly folders: BrowserFolders;
  readonly guard: IsolationCheck;
  readonly checkEveryMs?: number;
  /** The most memory that a browser may use. */
  readonly memoryBytes: number;
  /** What browsers are launched from. */
  readonly image: {
    now(): BrowserBuild & { id: string; hasRelay: boolean };
    onChange?(listener: () => void): void;
  };
  /** Follows the places, and tells of their ends; resolves once none is missed. */
  watch(): Promise<AsyncDisposable & { reconnect(): void }>;
  isAnswering(): Promise<boolean>;
  /** @throws LaunchFailed */
  launch(spec: BrowserSpec, bounds: { timeoutMs: number; stopped: AbortSignal }): Promise<P>;
  /** @param place null: what a failed launch or an earlier process has left, if anything */
  remove(workloadId: string, place: P | null): Promise<void>;
  /** The places of all browsers of this server. */
  list(): Promise<ListedPlace[]>;
  /** Null: no browser answers there. @param hasProxy whether its session has one */
  find(workloadId: string, hasProxy: boolean): Promise<FoundPlace<P, End> | null>;
  /** @param before the session of which it has, or should have, the label */
  label(place: P, sessionId: string, before: string | null): Promise<void>;
  explain(own: PlacedBrowser<P, End>, place: P, exit: End): Promise<PlaceEnd>;
  memoryUsed(place: P): Promise<number | null>;
  /** Bytes of its profile. Absent where the system bounds them. */
  profileBytes?(place: P): Promise<number | null>;
  readProfile(place: P, hasEnded: boolean, signal: AbortSignal): AsyncIterable<Uint8Array>;
};

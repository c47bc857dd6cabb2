import { sleep } from '#src/kernel/async/sleep.ts';
import { LaunchFailed } from '../browsers.ts';
import type {
  BrowserBuild,
  BrowserExit,
  Browsers,
  BrowserSpec,
  ObservedBrowser,
  RunningBrowser,
} from '../browsers.ts';
import { createSimulatedFolders, type SimulatedFolders } from './folders.ts';
import { openSimulatedCdp } from './cdp.ts';
import { createSimulatedProfiles } from './profiles.ts';
import { openSimulatedScreens } from './rfb.ts';

/**
 * Browsers without programs, for load tests: they take a set time to launch, fail at a set rate,
 * and answer just enough CDP and RFB to be connected to and closed. Each has a CDP port; all share
 * the server behind it and one VNC port, so thousands of them cost little memory.
 */
export type SimulatedBrowsers = Browsers & {
  readonly folders: SimulatedFolders;
  /** Ends a browser as if it had crashed. Ignores an unknown workload. */
  crash(workloadId: string, reason?: 'browser_crashed' | 'out_of_memory'): void;
  /** Ends a browser as if its user had closed it. Ignores an unknown workload. */
  closeByUser(workloadId: string): void;
  /** From now on browsers are launched from this build; those that run are outdated. */
  renew(build: BrowserBuild): void;
};

export type SimulatedBrowsersOptions = {
  /** Duration of each launch. */
  launchMs: number;
  /** Share of launches that fail, 0 to 1. */
  failRate: number;
  /** Numbers from 0 up to 1; `Math.random` by default. */
  random?: () => number;
  /** Milliseconds since the epoch; `Date.now` by default. */
  now?: () => number;
};

const KIND = { kind: 'simulated', egress: 'simulated' } as const;

type HowEnded = Pick<BrowserExit, 'reason' | 'exitCode' | 'detail'>;
const CLOSED: HowEnded = { reason: 'browser_closed', exitCode: 0, detail: 'a simulated close' };
const CRASHED: HowEnded = {
  reason: 'browser_crashed',
  exitCode: null,
  detail: 'a simulated crash',
};

/** Opens the servers; browsers end with them. */
export async function createSimulatedBrowsers(
  options: SimulatedBrowsersOptions,
): Promise<SimulatedBrowsers> {
  const { launchMs, failRate, random = Math.random, now = Date.now } = options;
  const cdp = openSimulatedCdp({
    onClose: (workloadId) => exit(workloadId, CLOSED),
    onCrash: (workloadId) => exit(workloadId, CRASHED),
  });
  const screens = await openSimulatedScreens();
  const launching = new Map<string, AbortController>();
  const running = new Map<string, RunningBrowser>();
  const sessions = new Map<string, string>();
  const listeners: ((exit: BrowserExit) => void)[] = [];
  const builds = createBuilds();
  const folders = createSimulatedFolders();
  const profiles = createSimulatedProfiles();

  function end(workloadId: string): boolean {
    launching.get(workloadId)?.abort();
    cdp.remove(workloadId);
    screens.remove(workloadId);
    sessions.delete(workloadId);
    profiles.remove(workloadId);
    builds.remove(workloadId);
    folders.close(workloadId);
    return running.delete(workloadId);
  }

  function exit(workloadId: string, how: HowEnded): void {
    if (!running.has(workloadId)) return;
    const ended = { workloadId, ...how, endedAt: now(), ...profiles.keep(workloadId, how.reason) };
    if (ended.hasProfile !== true) end(workloadId);
    for (const listener of listeners) listener(ended);
  }

  async function launch(spec: BrowserSpec): Promise<RunningBrowser> {
    const { workloadId, vncPassword, headless } = spec;
    if (launching.has(workloadId) || running.has(workloadId))
      throw new Error(`workload ${workloadId} already has a browser`);
    const stopped = new AbortController();
    launching.set(workloadId, stopped);
    await Promise.all([sleep(launchMs, stopped.signal), profiles.fill(workloadId, spec.profile)]);
    const screen = { ...spec.screen };
    const hasFailed = stopped.signal.aborted || random() < failRate;
    const endpoint = hasFailed ? null : await cdp.add(workloadId, screen);
    launching.delete(workloadId);
    if (stopped.signal.aborted) cdp.remove(workloadId);
    if (stopped.signal.aborted || endpoint === null) throw failure(stopped.signal);
    if (headless !== true) screens.add(workloadId, vncPassword, screen);
    builds.launch(workloadId);
    folders.open(workloadId);
    const browser = runningAt(workloadId, endpoint, screens.port);
    return running.set(workloadId, browser) && browser;
  }

  return {
    ...KIND,
    folders,
    ...builds.port,
    launch,
    stop: async (workloadId) => void end(workloadId),
    list: async () => observe(launching.keys(), running, sessions),
    assign: async (id, sessionId) => void (running.has(id) && sessions.set(id, sessionId)),
    adopt: async (workloadId) => running.get(workloadId) ?? null,
    onExit: (listener) => void listeners.push(listener),
    crash: (workloadId, reason) => exit(workloadId, { ...CRASHED, ...(reason && { reason }) }),
    closeByUser: (workloadId) => exit(workloadId, CLOSED),
    ...profiles.port,
    [Symbol.asyncDispose]: async () => {
      for (const workloadId of [...launching.keys(), ...running.keys()]) end(workloadId);
      await Promise.all([cdp[Symbol.asyncDispose](), screens[Symbol.asyncDispose]()]);
    },
  };
}

function failure({ aborted }: AbortSignal): LaunchFailed {
  return aborted
    ? new LaunchFailed('stopped during the launch', '')
    : new LaunchFailed('a simulated failure', 'simulated');
}

function runningAt(
  workloadId: string,
  cdp: { port: number; path: string },
  vncPort: number,
): RunningBrowser {
  const host = '127.0.0.1';
  return { workloadId, cdp: { host, ...cdp }, vnc: { host, port: vncPort } };
}

/** The build of each browser, and that of the next ones. */
function createBuilds() {
  const ofBrowser = new Map<string, BrowserBuild>();
  const listeners: (() => void)[] = [];
  let now: BrowserBuild = { version: 'simulated', builtAt: null };
  return {
    launch: (workloadId: string) => void ofBrowser.set(workloadId, now),
    remove: (workloadId: string) => void ofBrowser.delete(workloadId),
    port: {
      build: () => now,
      isOutdated: (workloadId: string) => (ofBrowser.get(workloadId) ?? now) !== now,
      onBuild: (listener: () => void) => void listeners.push(listener),
      renew(build: BrowserBuild) {
        now = build;
        for (const listener of listeners) listener();
      },
    },
  };
}

function observe(
  launching: Iterable<string>,
  running: ReadonlyMap<string, RunningBrowser>,
  sessions: ReadonlyMap<string, string>,
): ObservedBrowser[] {
  return [
    ...[...launching].map((workloadId) => ({ workloadId, sessionId: null, adoptable: null })),
    ...[...running].map(([workloadId, adoptable]) => ({
      workloadId,
      sessionId: sessions.get(workloadId) ?? null,
      adoptable,
    })),
  ];
}

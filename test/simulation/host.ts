import {
  LaunchFailed,
  type BrowserExit,
  type Browsers,
  type ObservedBrowser,
  type RunningBrowser,
} from '#src/browsers/browsers.ts';
import { createSimulatedFolders } from '#src/browsers/simulated/folders.ts';
import { pause, type Process, type World } from './world.ts';

/** A browser on a host; `gone`: its user has closed it, and its remains are there. */
type HostedBrowser = {
  workloadId: string;
  status: 'starting' | 'running' | 'gone';
  sessionId: string | null;
  closedAt: number | null;
};

/**
 * A machine with browsers. They outlive the service's process where they are containers, and are
 * its children otherwise.
 */
export type Host = {
  readonly id: string;
  readonly hasContainers: boolean;
  /** False while the machine is down. */
  isUp: boolean;
  /** Ids of the browsers that exist. */
  ids(): string[];
  running(): string[];
  /** Labels that replaced the one of another session. */
  readonly relabelled: string[];
  /** The browser ends by itself. */
  end(workloadId: string, reason: 'browser_crashed' | 'browser_closed'): void;
  /** The service's process has ended without ending its browsers. */
  processEnded(): void;
  /** The machine has lost its power. */
  powerOff(): void;
  browsersFor(process: Process): Browsers;
};

const LAUNCH_MS = [150, 1_500] as const;
const STOP_MS = [5, 400] as const;

export function createHost(world: World, id: string, hasContainers: boolean): Host {
  const random = world.random(`host ${id}`);
  const browsers = new Map<string, HostedBrowser>();
  const relabelled: string[] = [];
  let inCharge: { process: Process; listeners: ((exit: BrowserExit) => void)[] } | null = null;

  function end(workloadId: string, reason: 'browser_crashed' | 'browser_closed'): void {
    const browser = browsers.get(workloadId);
    if (browser?.status !== 'running') return;
    const charged = inCharge;
    world.tell(id, `${workloadId}: ${reason}`);
    const endedAt = world.time.now();
    const isObserved = charged !== null && !charged.process.isDead;
    if (reason === 'browser_closed' && hasContainers && !isObserved)
      Object.assign(browser, { status: 'gone', closedAt: endedAt });
    else browsers.delete(workloadId);
    if (!isObserved) return;
    const exit = { workloadId, reason, exitCode: 0, endedAt, detail: 'in the simulation' };
    world.time.runAs(charged.process, () => {
      for (const listener of charged.listeners) listener(exit);
    });
  }
  const host: Host = {
    id,
    hasContainers,
    isUp: true,
    relabelled,
    ids: () => [...browsers.keys()],
    running: () => [...browsers.values()].flatMap((one) => (isRunning(one) ? one.workloadId : [])),
    end,
    processEnded() {
      inCharge = null;
      if (!hasContainers) browsers.clear();
    },
    powerOff() {
      inCharge = null;
      browsers.clear();
      host.isUp = false;
    },
    browsersFor(process) {
      const listeners: ((exit: BrowserExit) => void)[] = [];
      inCharge = { process, listeners };
      return browsersOf({ world, random, browsers, relabelled, hasContainers, listeners });
    },
  };
  return host;
}

function isRunning({ status }: HostedBrowser): boolean {
  return status === 'running';
}

function browsersOf({
  world: { rates },
  random,
  browsers,
  relabelled,
  hasContainers,
  listeners,
}: {
  world: World;
  random: ReturnType<World['random']>;
  browsers: Map<string, HostedBrowser>;
  relabelled: string[];
  hasContainers: boolean;
  listeners: ((exit: BrowserExit) => void)[];
}): Browsers {
  async function stop(workloadId: string): Promise<void> {
    await pause(random.integer(...STOP_MS));
    if (random.chance(rates.stopFails)) throw new Error('the engine does not answer');
    browsers.delete(workloadId);
  }
  return {
    kind: hasContainers ? 'docker' : 'process',
    folders: createSimulatedFolders(),
    build: () => ({ version: 'simulated', builtAt: null }),
    async launch({ workloadId }) {
      if (browsers.has(workloadId)) throw new Error(`${workloadId} has a browser already`);
      const browser: HostedBrowser = {
        workloadId,
        status: 'starting',
        sessionId: null,
        closedAt: null,
      };
      browsers.set(workloadId, browser);
      await pause(random.integer(...LAUNCH_MS));
      if (random.chance(rates.launchFails) || browsers.get(workloadId) !== browser) {
        browsers.delete(workloadId);
        throw new LaunchFailed('a simulated failure', 'in the simulation');
      }
      browser.status = 'running';
      return runningOf(workloadId);
    },
    stop,
    close: () => Promise.resolve(false),
    readProfile: () => {
      throw new Error('no profile is kept in a simulation');
    },
    async list() {
      await pause(random.integer(1, 20));
      return [...browsers.values()].map(observed);
    },
    async assign(workloadId, sessionId) {
      const browser = browsers.get(workloadId);
      if (browser === undefined) return;
      if (browser.sessionId !== null && browser.sessionId !== sessionId)
        relabelled.push(workloadId);
      browser.sessionId = sessionId;
    },
    async adopt(workloadId) {
      const browser = browsers.get(workloadId);
      return browser !== undefined && isRunning(browser) ? runningOf(workloadId) : null;
    },
    onExit: (listener) => void listeners.push(listener),
    ...(hasContainers ? { leave: async () => {} } : {}),
    async [Symbol.asyncDispose]() {
      await pause(1);
      browsers.clear();
    },
  };
}

function observed(browser: HostedBrowser): ObservedBrowser {
  const { workloadId, sessionId, closedAt } = browser;
  const adoptable = isRunning(browser) ? runningOf(workloadId) : null;
  return { workloadId, sessionId, adoptable, ...(closedAt === null ? {} : { closedAt }) };
}

function runningOf(workloadId: string): RunningBrowser {
  return {
    workloadId,
    cdp: { host: '127.0.0.1', port: 9222, path: `/devtools/browser/${workloadId}` },
    vnc: { host: '127.0.0.1', port: 5900 },
  };
}

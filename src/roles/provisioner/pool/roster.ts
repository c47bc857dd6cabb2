import type { SessionIdentity } from '#src/kernel/domain/session/session.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import type { ServedBrowser } from '#src/browsers/served-browsers.ts';
import type { EgressProxy } from '#src/browsers/egress-endpoint.ts';
import type { ReportQueue } from '#src/commands/reporter.ts';
import type { LaunchOptions } from './options.ts';

/**
 * A browser that this process is in charge of; the log knows it as the workload `workloadId`. An
 * adopted browser begins as idle or busy.
 */
export type PooledBrowser = ReportQueue &
  ServedBrowser & {
    /** The options it was launched with, or resized to. */
    options: LaunchOptions;
    /** The organization of the request that it is or was launched for; null: for the pool. */
    launchedFor: string | null;
    /** Its proxy, if it was launched for a session with egress rules. */
    egress: EgressProxy | null;
    /**
     * While ending: resolves when its end and that of its session are reported; false: the pool has
     * closed before the browser could be removed, and no end is reported.
     */
    ended: Promise<boolean>;
    /** Resolves when a save of its profile that was asked for has been reported. */
    saving: Promise<void>;
    /** Set while its removal is tried again and again; resolved once it has failed. */
    isUnremovable: boolean;
    removalFailed: PromiseWithResolvers<void>;
  };

/** The browsers of this server that this process is in charge of, ahead of the log. */
export type Roster = ReturnType<typeof createRoster>;

/** @param onChange called after each change */
export function createRoster(onChange: () => void) {
  const browsers = new Map<string, PooledBrowser>();

  function put(pooled: PooledBrowser): PooledBrowser {
    browsers.set(pooled.workloadId, pooled);
    onChange();
    return pooled;
  }
  function add(
    workloadId: string,
    options: LaunchOptions,
    launchedFor: string | null,
  ): PooledBrowser {
    const nothing = { browser: null, session: null, egress: null, ...createQueues() };
    return put({ workloadId, options, phase: 'launching', launchedFor, ...nothing });
  }
  /** Adds a browser of an earlier process: busy with its session, or idle if that is null. */
  function adopt(
    browser: RunningBrowser,
    options: LaunchOptions,
    session: SessionIdentity | null,
  ): PooledBrowser {
    const { workloadId } = browser;
    const phase = session === null ? 'idle' : 'busy';
    const begun = { browser, launchedFor: null, session, egress: null, ...createQueues() };
    return put({ workloadId, options, phase, ...begun });
  }
  function move(pooled: PooledBrowser, phase: PooledBrowser['phase']): void {
    pooled.phase = phase;
    onChange();
  }
  function remove(workloadId: string): void {
    browsers.delete(workloadId);
    onChange();
  }
  /** The browser that has been idle longest; all idle browsers have the default options. */
  function longestIdle(): PooledBrowser | null {
    for (const pooled of browsers.values()) if (pooled.phase === 'idle') return pooled;
    return null;
  }
  function counts() {
    const counted = { launching: 0, idle: 0, busy: 0, ending: 0 };
    // A browser that cannot be removed takes room, and none of it will be free soon.
    for (const { phase, isUnremovable } of browsers.values())
      counted[isUnremovable ? 'busy' : phase] += 1;
    return counted;
  }
  return {
    add,
    adopt,
    move,
    remove,
    longestIdle,
    counts,
    get: (workloadId: string) => browsers.get(workloadId) ?? null,
    all: () => [...browsers.values()],
    ids: () => new Set(browsers.keys()),
  };
}

function createQueues() {
  const removalFailed = Promise.withResolvers<void>();
  return {
    reports: Promise.resolve(),
    saving: Promise.resolve(),
    ended: Promise.resolve(true),
    isUnremovable: false,
    removalFailed,
  };
}

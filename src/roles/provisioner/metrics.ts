import { isFinal } from '#src/kernel/domain/session/session.ts';
import type { SessionEvents } from '#src/kernel/event-store/session-events.ts';
import type { Metrics } from '#src/kernel/telemetry/metrics.ts';
import type { Browsers, BrowserSpec, RunningBrowser } from '#src/browsers/browsers.ts';
import { replaceMembers } from '#src/browsers/replace-members.ts';

/**
 * Wraps browsers so that the outcome and the duration of each launch are counted. One that is
 * stopped meanwhile has neither succeeded nor failed, and is not counted.
 */
export function measureLaunches(
  browsers: Browsers,
  metrics: Pick<Metrics, 'browserLaunched'>,
): Browsers {
  /** Launches under way that were not stopped. */
  const launching = new Set<string>();

  async function launch(spec: BrowserSpec): Promise<RunningBrowser> {
    const begunAt = performance.now();
    launching.add(spec.workloadId);
    try {
      const launched = await browsers.launch(spec);
      metrics.browserLaunched('launched', performance.now() - begunAt);
      return launched;
    } catch (error) {
      if (launching.has(spec.workloadId))
        metrics.browserLaunched('failed', performance.now() - begunAt);
      throw error;
    } finally {
      launching.delete(spec.workloadId);
    }
  }
  function stop(workloadId: string): Promise<void> {
    launching.delete(workloadId);
    return browsers.stop(workloadId);
  }
  return replaceMembers(browsers, { launch, stop });
}

/** Exports the age of what new browsers are launched from, by its version. */
export function watchAge(
  browsers: Pick<Browsers, 'build'>,
  metrics: Pick<Metrics, 'watch'>,
  now: () => number = Date.now,
): void {
  metrics.watch(['bss_browser_age_seconds'], () => {
    const { version, builtAt } = browsers.build();
    if (builtAt === null) return {};
    return { bss_browser_age_seconds: { [version]: Math.max(0, now() - builtAt) / 1000 } };
  });
}

/**
 * Counts the sessions that get a browser of this server, from the session events: cold where the
 * session was assigned first (it waited for a launch), warm otherwise.
 * @returns the function that ends the counting
 */
export function countStarts(
  sessionEvents: SessionEvents,
  serverId: string,
  metrics: Pick<Metrics, 'sessionStarted'>,
): () => void {
  // Bounded by the sessions that wait for a launch: the next event of a session removes its id.
  const assigned = new Set<string>();
  return sessionEvents.watchAll(({ type, state }) => {
    if (type === 'session.assigned' && state.assignment?.serverId === serverId)
      assigned.add(state.id);
    const isOver = type === 'session.requeued' || isFinal(state.status);
    if (isOver || state.status === 'stopping') assigned.delete(state.id);
    if (type !== 'session.activated' || state.workload?.serverId !== serverId) return;
    metrics.sessionStarted(assigned.delete(state.id) ? 'cold' : 'warm');
  });
}

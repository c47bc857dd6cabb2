import type { Browsers, BrowserSpec, RunningBrowser } from '../browsers.ts';
import { replaceMembers } from '../replace-members.ts';
import type { Observer } from './observer.ts';

/**
 * Wraps browsers so that each is observed from its launch or adoption on. A launch resolves once
 * the parts are in place, so an assignment waits for nothing; an adopted browser has its session
 * already, so that is not kept waiting.
 */
export function observedBrowsers(browsers: Browsers, observer: Observer): Browsers {
  /** Launches under way that were not stopped. */
  const launching = new Set<string>();
  browsers.onExit(({ workloadId }) => observer.detach(workloadId));

  async function launch(spec: BrowserSpec): Promise<RunningBrowser> {
    launching.add(spec.workloadId);
    try {
      const browser = await browsers.launch(spec);
      if (launching.has(spec.workloadId)) await observer.attach(browser, spec);
      return browser;
    } finally {
      launching.delete(spec.workloadId);
    }
  }
  async function adopt(...asked: Parameters<Browsers['adopt']>): Promise<RunningBrowser | null> {
    const [, , launchedWith] = asked;
    const browser = await browsers.adopt(...asked);
    if (browser !== null) void observer.attach(browser, launchedWith);
    return browser;
  }
  function stop(workloadId: string): Promise<void> {
    launching.delete(workloadId);
    observer.detach(workloadId);
    return browsers.stop(workloadId);
  }
  async function end(): Promise<void> {
    observer[Symbol.dispose]();
    await browsers[Symbol.asyncDispose]();
  }
  async function leave(): Promise<void> {
    await browsers.leave?.();
    observer[Symbol.dispose]();
  }
  const leaving = browsers.leave === undefined ? {} : { leave };
  return replaceMembers(browsers, { launch, adopt, stop, ...leaving, [Symbol.asyncDispose]: end });
}

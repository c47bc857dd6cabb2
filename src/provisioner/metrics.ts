import type { Metrics } from '#src/telemetry/metrics.ts';
import type { Browsers, BrowserSpec, RunningBrowser } from './browsers/browsers.ts';

/** The same browsers; what each launch takes and comes to is counted. */
export function measureLaunches(
  browsers: Browsers,
  metrics: Pick<Metrics, 'browserLaunched'>,
): Browsers {
  async function launch(spec: BrowserSpec): Promise<RunningBrowser> {
    const begunAt = performance.now();
    try {
      const launched = await browsers.launch(spec);
      metrics.browserLaunched('launched', performance.now() - begunAt);
      return launched;
    } catch (error) {
      metrics.browserLaunched('failed', performance.now() - begunAt);
      throw error;
    }
  }
  // A copy would have none of the methods of a class.
  return new Proxy(browsers, {
    get(target, name): unknown {
      if (name === 'launch') return launch;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

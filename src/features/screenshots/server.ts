import type { ServedBrowsers } from '#src/browsers/served-browsers.ts';
import type { ServerAddition, ServerProcess } from '../feature.ts';
import { createScreenshots } from './screenshots.ts';

export function screenshotsOfServer({
  log,
  metrics,
}: Pick<ServerProcess, 'log' | 'metrics'>): ServerAddition {
  let browsers: ServedBrowsers | null = null;
  const screenshot = createScreenshots({
    served: { get: (workloadId) => browsers?.get(workloadId) ?? null },
    log,
    screenshotMade: (...made) => metrics.screenshotMade(...made),
  });
  return { part: { open: (served) => void (browsers = served) }, answers: { screenshot } };
}

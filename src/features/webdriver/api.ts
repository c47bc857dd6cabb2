import type { Rejection } from '#src/kernel/errors.ts';
import type { Dialect } from '#src/roles/api/http/dialect.ts';
import type { FeatureApi } from '../feature.ts';
import { createDrivers } from './drivers.ts';
import { PREFIX, webDriver, type WebDriverParts } from './routes/webdriver.ts';
import { webDriverRejection } from './webdriver-error.ts';

/** W3C's rules, also for a path that there is not: its form of errors and its `Cache-Control`. */
const dialect: Dialect = {
  prefix: PREFIX,
  takesPasswords: true,
  cacheControl: 'no-cache',
  answer: (rejection) => ({ ...webDriverRejection(rejection), headers: headersOf(rejection) }),
};

/** Java's client sends the password of its address when it is asked for it. */
function headersOf({ code }: Rejection): Record<string, string> {
  return code === 'UNAUTHORIZED' ? { 'www-authenticate': 'Basic realm="API key as password"' } : {};
}

export const webDriverApi: FeatureApi<WebDriverParts & Disposable> = {
  open({ driverUrl }) {
    const drivers = createDrivers();
    return { driverUrl, drivers, [Symbol.dispose]: () => drivers[Symbol.dispose]() };
  },
  dialect,
  routes: (server, api, own) => webDriver(server, { ...api, ...own }),
};

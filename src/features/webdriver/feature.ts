import type { Feature } from '../feature.ts';

/** W3C WebDriver, for Selenium and its kind. */
export const webDriver: Feature = {
  name: 'webdriver',
  api: async () => (await import('./api.ts')).webDriverApi,
};

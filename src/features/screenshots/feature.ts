import type { Feature } from '../feature.ts';

/** Pictures of sessions. */
export const screenshots: Feature = {
  name: 'screenshots',
  server: async () => (await import('./server.ts')).screenshotsOfServer,
};

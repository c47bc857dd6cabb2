import type { Feature } from '../feature.ts';

/** What sessions download and are given. */
export const files: Feature = {
  name: 'files',
  server: async () => (await import('./server.ts')).filesOfServer,
};

import type { Feature } from '../feature.ts';

/** Keeps browsers' profiles between sessions. */
export const profiles: Feature = {
  name: 'profiles',
  api: async () => (await import('./api.ts')).profilesApi,
  server: async () => (await import('./server.ts')).profilesOfServer,
};

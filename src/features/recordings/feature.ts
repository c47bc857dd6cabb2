import type { Feature } from '../feature.ts';

/** Records the screens of sessions that ask for it. */
export const recordings: Feature = {
  name: 'recordings',
  api: async () => (await import('./api.ts')).recordingsApi,
  server: async () => (await import('./server.ts')).recordingsOfServer,
};

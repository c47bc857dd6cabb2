import type { Feature } from '../feature.ts';

/** Records the screens of sessions that ask for it. */
export const recordings: Feature = {
  name: 'recordings',
  api: async () => (await import('./api.ts')).recordingsApi,
  server: async () => (await import('./server.ts')).recordingsOfServer,
  retention: async ({ config, context }) => {
    const { sessionRetention } = await import('#src/kernel/objects/sweep/session-retention.ts');
    return [sessionRetention('recordings', context, config.recordings.retainMs)];
  },
};

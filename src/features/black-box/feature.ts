import type { Feature } from '../feature.ts';

/** What browsers told before the ends of their sessions. */
export const blackBox: Feature = {
  name: 'black-box',
  api: async () => (await import('./api.ts')).blackBoxApi,
  server: async () => (await import('./server.ts')).blackBoxOfServer,
  retention: async ({ config, context }) => {
    const { sessionRetention } = await import('#src/kernel/objects/sweep/session-retention.ts');
    return [sessionRetention('thumbnails', context, config.files.retainMs)];
  },
};

import type { Feature } from '../feature.ts';

/** What sessions download and are given. */
export const files: Feature = {
  name: 'files',
  api: async () => (await import('./api.ts')).filesApi,
  server: async () => (await import('./server.ts')).filesOfServer,
  retention: async ({ config, context }) => {
    const { sessionRetention } = await import('#src/kernel/objects/sweep/session-retention.ts');
    return [sessionRetention('files', context, config.files.retainMs)];
  },
};

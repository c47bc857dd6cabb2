import type { Feature } from '../feature.ts';

/** Keeps browsers' profiles between sessions. */
export const profiles: Feature = {
  name: 'profiles',
  api: async () => (await import('./api.ts')).profilesApi,
  server: async () => (await import('./server.ts')).profilesOfServer,
  retention: async ({ config, context }) => {
    const { profileRetention } = await import('./retention.ts');
    const { replacedKeptMs } = config.objects;
    return [profileRetention(context.eventStore, { replacedKeptMs, now: context.now })];
  },
};

import type { Feature } from '../feature.ts';

/** Takes the extensions that sessions' browsers are launched with. */
export const extensions: Feature = {
  name: 'extensions',
  api: async () => (await import('./api.ts')).extensionsApi,
  retention: async ({ context }) => {
    const { extensionRetention } = await import('./retention.ts');
    return [extensionRetention(context.eventStore, context.now)];
  },
};

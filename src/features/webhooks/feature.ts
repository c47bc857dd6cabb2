import type { Feature } from '../feature.ts';

/** Sends an organization's events to its own URLs, signed. */
export const webhooks: Feature = {
  name: 'webhooks',
  api: async () => (await import('./api.ts')).webhooksApi,
  starts: {
    webhooks: async (process) => (await import('./sender/compose.ts')).composeSender(process),
  },
};

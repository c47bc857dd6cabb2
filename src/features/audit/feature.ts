import type { Feature } from '../feature.ts';

/** Exports an organization's records, chained and signed. */
export const audit: Feature = {
  name: 'audit',
  api: async () => (await import('./api.ts')).auditApi,
};

import type { Feature } from '../feature.ts';

/** Automation asks a person for help; addresses of a session's screen for others. */
export const handoff: Feature = {
  name: 'handoff',
  api: async () => (await import('./api.ts')).handoffApi,
};

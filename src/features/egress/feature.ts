import type { Feature } from '../feature.ts';

/** The ways out of browsers whose sessions have rules for their connections. */
export const egress: Feature = {
  name: 'egress',
  server: async () => (await import('./server.ts')).egressOfServer,
};

import type { Feature } from '../feature.ts';

/** Ports of sessions' own, for programs that take `host:port` as a browser's address. */
export const debuggerAddress: Feature = {
  name: 'debugger-address',
  api: async () => (await import('./api.ts')).debuggerAddressApi,
};

import type { FeatureApi } from '../feature.ts';
import { createDebuggerAddresses, type DebuggerAddresses } from './debugger-addresses.ts';
import { debuggerAddress } from './routes/debugger-address.ts';

export const debuggerAddressApi: FeatureApi<DebuggerAddresses> = {
  open: ({ config, urls, log }) =>
    createDebuggerAddresses({
      gatewayUrl: config.gateway.internalUrl,
      cdpUrl: (session, keyHash) => urls.cdpUrl(session, keyHash),
      log,
    }),
  routes: (server, api, debuggerAddresses) =>
    debuggerAddress(server, { ...api, debuggerAddresses }),
};

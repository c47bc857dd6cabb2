import { audit } from './audit/feature.ts';
import { debuggerAddress } from './debugger-address/feature.ts';
import { extensions } from './extensions/feature.ts';
import type { Feature } from './feature.ts';
import { mcp } from './mcp/feature.ts';
import { pages } from './pages/feature.ts';
import { profiles } from './profiles/feature.ts';
import { recordings } from './recordings/feature.ts';
import { webDriver } from './webdriver/feature.ts';
import { webhooks } from './webhooks/feature.ts';

/** The features of the service. One without its line here costs nothing, and its folder may go. */
export const features: readonly Feature[] = [
  pages,
  debuggerAddress,
  recordings,
  profiles,
  webhooks,
  extensions,
  audit,
  webDriver,
  mcp,
];

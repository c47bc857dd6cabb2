import { audit } from './audit/feature.ts';
import { blackBox } from './black-box/feature.ts';
import { debuggerAddress } from './debugger-address/feature.ts';
import { egress } from './egress/feature.ts';
import { extensions } from './extensions/feature.ts';
import type { Feature } from './feature.ts';
import { files } from './files/feature.ts';
import { handoff } from './handoff/feature.ts';
import { mcp } from './mcp/feature.ts';
import { pages } from './pages/feature.ts';
import { profiles } from './profiles/feature.ts';
import { recordings } from './recordings/feature.ts';
import { screenshots } from './screenshots/feature.ts';
import { webDriver } from './webdriver/feature.ts';
import { webhooks } from './webhooks/feature.ts';

/** The features of the service. One without its line here costs nothing, and its folder may go. */
export const features: readonly Feature[] = [
  pages,
  debuggerAddress,
  screenshots,
  files,
  recordings,
  blackBox,
  handoff,
  profiles,
  egress,
  webhooks,
  extensions,
  audit,
  webDriver,
  mcp,
];

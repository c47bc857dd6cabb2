import type { FeatureApi } from '../feature.ts';
import { openMcp } from './compose.ts';
import { serveMcp, type McpParts } from './mcp.ts';

export const mcpApi: FeatureApi<McpParts> = {
  open: openMcp,
  routes: (server, api, mcp) => serveMcp(server, { ...api, mcp }),
};

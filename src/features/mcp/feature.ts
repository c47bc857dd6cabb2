import type { Feature } from '../feature.ts';

/** The MCP server, by which agents use browsers. */
export const mcp: Feature = {
  name: 'mcp',
  api: async () => (await import('./api.ts')).mcpApi,
};

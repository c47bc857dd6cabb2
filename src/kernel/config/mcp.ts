import { BadConfig, wait, type Values, variable } from './parse.ts';

/** How long clients of the MCP server may be away, in ms. */
export type McpConfig = { graceMs: number; silenceMs: number };

export const mcpVariables = {
  // An API process says every quarter of it that a client is there.
  MCP_GRACE: variable(
    wait('2s'),
    '60s',
    'sessions of an MCP client end when it was cut off and sends nothing for this long; ' +
      'ten times as long after a restart of the API',
  ),
  MCP_SILENCE: variable(
    wait(),
    '30m',
    'the same for an MCP client without an open stream, since its last request',
  ),
} as const;

/** @throws BadConfig naming the variable that is wrong */
export function readMcp(values: Values<typeof mcpVariables>): McpConfig {
  const { MCP_GRACE: graceMs, MCP_SILENCE: silenceMs } = values;
  if (silenceMs < graceMs) throw new BadConfig('MCP_SILENCE: is less than MCP_GRACE');
  return { graceMs, silenceMs };
}

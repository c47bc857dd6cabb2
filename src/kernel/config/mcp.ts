import { BadConfig, wait, type Read } from './parse.ts';

/** How long clients of the MCP server may be away, in ms. */
export type McpConfig = { graceMs: number; silenceMs: number };

export const mcpVariables = {
  MCP_GRACE: {
    fallback: '60s',
    meaning:
      'sessions of an MCP client end when it was cut off and sends nothing for this long; ' +
      'ten times as long after a restart of the API',
  },
  MCP_SILENCE: {
    fallback: '30m',
    meaning: 'the same for an MCP client without an open stream, since its last request',
  },
} as const;

/** An API process says every quarter of MCP_GRACE that a client is there. */
const GRACE_MIN_MS = 2_000;

/** @throws BadConfig naming the variable that is wrong */
export function readMcp(read: Read<keyof typeof mcpVariables>): McpConfig {
  const graceMs = wait('MCP_GRACE', read);
  if (graceMs < GRACE_MIN_MS)
    throw new BadConfig(`MCP_GRACE: ${read('MCP_GRACE')} is less than 2s`);
  const silenceMs = wait('MCP_SILENCE', read);
  if (silenceMs < graceMs)
    throw new BadConfig(`MCP_SILENCE: ${read('MCP_SILENCE')} is less than MCP_GRACE`);
  return { graceMs, silenceMs };
}

/** Messages to the MCP server without a client of the protocol. */

/** What a client of the protocol accepts. */
export const BOTH = 'application/json, text/event-stream';

/** Posts messages to the MCP server as the organization's owner; headers may say otherwise. */
export const postTo =
  (url: URL) =>
  (message: object, headers: Record<string, string> = {}) =>
    fetch(url, {
      method: 'POST',
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      headers: {
        authorization: 'Bearer any',
        'content-type': 'application/json',
        accept: BOTH,
        ...headers,
      },
    });
export const INITIALIZE = {
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'plain', version: '2' },
  },
};

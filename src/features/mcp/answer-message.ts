import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import * as http from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import packageJson from '../../../package.json' with { type: 'json' };
import { tools, type Arguments } from './tools.ts';
import type { ToolAnswer } from './call-tool.ts';

const INSTRUCTIONS =
  'Real browsers, each isolated and billed by the minute. create_session starts one; start ' +
  'Playwright MCP with the --cdp-endpoint line of its answer to steer it. Sessions end with this ' +
  'MCP session unless they were created with keep.';

const LISTED = tools.map(({ name, title, description, inputSchema, isReadOnly }) => ({
  name,
  title,
  description,
  inputSchema,
  annotations: { title, readOnlyHint: isReadOnly },
}));

/**
 * Answers one message of the Model Context Protocol. Nothing of an MCP session is in this process's
 * memory: each message has a protocol server of its own, so every process can answer every message.
 * @param message one message of JSON-RPC
 */
export async function answerMessage(
  headers: Headers,
  message: unknown,
  call: (name: string, given: Arguments) => Promise<ToolAnswer>,
): Promise<Response> {
  const server = new Server(
    { name: 'browser-session-service', version: packageJson.version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: LISTED }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) =>
    call(params.name, params.arguments ?? {}),
  );
  const transport = new http.WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  try {
    const request = new Request('http://localhost/mcp', { method: 'POST', headers });
    return await transport.handleRequest(request, { parsedBody: message });
  } finally {
    await server.close();
  }
}

// Playwright MCP on a session: node agent.mjs <url> <key>
// An agent's own configuration needs the same command and arguments as below.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { createClient } from 'browser-session-service/client';

const [, , url, apiKey] = process.argv;
const { sessions } = createClient({ url, apiKey });
await using session = await sessions.create({ session_name: 'mcp', duration: '30m' });

const args = ['--no', 'playwright-mcp', '--', '--cdp-endpoint', session.cdp_url];
const agent = new Client({ name: 'example', version: '1.0.0' });
await agent.connect(new StdioClientTransport({ command: 'npx', args }));
const call = async (name, asked) =>
  (await agent.callTool({ name, arguments: asked })).content[0].text;

await call('browser_navigate', {
  url: 'data:text/html,<title>Form</title><button onclick="document.title=`Sent`">Send</button>',
});
const seen = await call('browser_snapshot', {});
const [, target] = /button "Send" \[ref=(\w+)\]/.exec(seen);
await call('browser_click', { element: 'the button Send', target });
console.log(/Page Title: (.*)/.exec(await call('browser_snapshot', {}))[1]);
await agent.close();

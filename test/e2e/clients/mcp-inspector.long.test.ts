import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { scratchDir } from '#test/support/scratch.ts';
import {
  DEV_KEY,
  eventually,
  startService,
  type RunningService,
} from '#test/support/service/service.ts';

/** The protocol's own inspector, as a command line, at /mcp of the whole service. */

const INSPECTOR = '@modelcontextprotocol/inspector@2.12.0';
const run = promisify(execFile);

let folder: Awaited<ReturnType<typeof scratchDir>>;
let service: RunningService;
beforeAll(async () => {
  folder = await scratchDir();
  service = await startService({ POOL_MIN_IDLE: '1' });
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', INSPECTOR];
  await run('npm', args, { cwd: folder.path });
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

/** What it prints for one method, in an MCP session of its own. */
async function inspect(...args: string[]) {
  const program = join(folder.path, 'node_modules/.bin/mcp-inspector');
  const url = `${service.apiUrl}/mcp`;
  const credential = ['--header', `Authorization: Bearer ${DEV_KEY}`];
  const given = ['--cli', url, '--transport', 'http', ...credential, '--method', ...args];
  // npx and npm's links run it by the node of PATH, which may be another one.
  const { stdout } = await run(process.execPath, [program, ...given], { maxBuffer: 2 ** 24 });
  return JSON.parse(stdout) as Record<string, never>;
}
function call(tool: string, given: Record<string, string> = {}) {
  const args = Object.entries(given).flatMap(([name, value]) => ['--tool-arg', `${name}=${value}`]);
  return inspect('tools/call', '--tool-name', tool, ...args);
}

it('lists the ten tools and calls those of a session’s life', async () => {
  const { tools } = await inspect('tools/list');
  expect(tools).toHaveLength(10);
  const created = await call('create_session', { keep: 'true', duration: '30m' });
  const { id: session_id } = created['structuredContent'] as unknown as { id: string };
  const { structuredContent: listed } = await call('list_sessions', { status: 'active' });
  expect(listed).toMatchObject({ sessions: [{ id: session_id }] });
  const { structuredContent: stopped } = await call('stop_session', { session_id });
  expect(stopped).toMatchObject({ session_id });
  await eventually(async () => {
    const { structuredContent: why } = await call('why_ended', { session_id });
    return String(why?.['summary']).includes('stopped (user)');
  }, 'the session has ended, and the tool says by whom');
});

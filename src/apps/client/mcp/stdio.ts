#!/usr/bin/env node
import { createBridge } from './bridge.ts';
import type { Message } from './mcp-http.ts';

/**
 * `bss-mcp`: the service's MCP server for clients that start a program and speak with it on stdin
 * and stdout, a message a line. API_URL and API_KEY say where it is. Once stdin ends, the MCP
 * session ends, and with it the browser sessions that were made in it.
 */

/** A longer line ends the program: it is held in memory until it is whole. */
const LINE_MAX = 10 * 1024 * 1024;
/**
 * How long answers that are on their way when stdin ends are waited for: a client that closes stdin
 * sends SIGTERM after 2 s, as a rule, and SIGKILL 2 s later.
 */
const REST_MS = 1_500;
const PARSE_ERROR = { code: -32_700, message: 'not a message of JSON-RPC' };

const { API_URL: url = 'http://127.0.0.1:8080', API_KEY: apiKey } = process.env;
if (apiKey === undefined || apiKey === '' || !URL.canParse(url)) {
  process.stderr.write('bss-mcp: API_KEY must be set, and API_URL the address of the service\n');
  process.exit(2);
}

const log = (line: string) => void process.stderr.write(`bss-mcp: ${line}\n`);
const send = (message: object) => void process.stdout.write(`${JSON.stringify(message)}\n`);
const bridge = createBridge({ url, apiKey, send, log });
const underWay = new Set<Promise<void>>();
let leaving: Promise<never> | null = null;
/** Ends the wait for answers. An AbortController, for Node 20 has no Promise.withResolvers. */
const hurry = new AbortController();
const hurried = new Promise((resolve) => hurry.signal.addEventListener('abort', resolve));

/** @param restMs how long answers are waited for; 0 hurries a leave that waits already, too */
function leave(code: number, restMs: number): Promise<never> {
  if (restMs === 0) hurry.abort();
  leaving ??= (async () => {
    const rest = new Promise((resolve) => setTimeout(resolve, restMs));
    await Promise.race([Promise.all(underWay), rest, hurried]);
    await bridge.end();
    process.exit(code);
  })();
  return leaving;
}

function take(line: string): void {
  if (line.trim() === '') return;
  const message = read(line);
  if (message === null) return send({ jsonrpc: '2.0', id: null, error: PARSE_ERROR });
  const passing = bridge.pass(message).finally(() => underWay.delete(passing));
  underWay.add(passing);
}

function read(line: string): Message | null {
  try {
    const message = JSON.parse(line) as unknown;
    const isOne = typeof message === 'object' && message !== null && !Array.isArray(message);
    return isOne ? (message as Message) : null;
  } catch {
    return null;
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void leave(0, 0));
// The client does not read any more.
process.stdout.on('error', () => void leave(1, 0));

let parts: string[] = [];
let length = 0;
process.stdin.setEncoding('utf8');
process.stdin.on('data', (text: string) => {
  if (leaving !== null) return;
  const [first = '', ...lines] = text.split('\n');
  for (const one of [first, ...lines.map((line) => `\n${line}`)]) {
    const begins = one.startsWith('\n');
    if (begins) {
      take(parts.join(''));
      [parts, length] = [[], 0];
    }
    const part = begins ? one.slice(1) : one;
    parts.push(part);
    length += part.length;
  }
  if (length <= LINE_MAX) return;
  log('a line is longer than 10 MB');
  void leave(1, 0);
});
process.stdin.on('end', () => {
  if (leaving !== null) return;
  take(parts.join(''));
  if (underWay.size > 0) log('stdin has ended; waiting for answers that are on their way');
  void leave(0, REST_MS);
});
process.stdin.on('error', () => void leave(1, 0));

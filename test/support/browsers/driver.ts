import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connectToBrowser, driverPath } from '#src/browsers/link/browser-link.ts';
import type { DriverAddress } from '#src/browsers/link/browser-link.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { driverPathOf } from './browsers.fixture.ts';

/** The driver beside a browser of a test's adapter. */
export function driverOf({ workloadId, webdriver, cdp }: RunningBrowser): DriverAddress {
  if (webdriver === undefined) throw new Error(`${workloadId} has no driver`);
  const { linkKey } = cdp;
  const path = linkKey === undefined ? driverPathOf(workloadId) : driverPath(linkKey);
  return { ...webdriver, path, ...(linkKey === undefined ? {} : { linkKey }) };
}

/** Sends one command on a connection of its own. @throws Error where that is closed */
export async function command(
  driver: DriverAddress,
  method: string,
  path: string,
  { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
): Promise<{ status: number; value: unknown }> {
  const payload = body === undefined ? '' : JSON.stringify(body);
  const sent = request({
    method,
    path: `${driver.path}${path}`,
    createConnection: () => connectToBrowser(driver),
    headers: { host: '127.0.0.1', 'content-length': Buffer.byteLength(payload), ...headers },
  });
  sent.end(payload);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const answer = await text(response);
  sent.destroy();
  const isJson = answer.startsWith('{');
  const value = isJson ? (JSON.parse(answer) as { value: unknown }).value : answer;
  return { status: response.statusCode ?? 0, value };
}

/** Begins a session of the driver in the running browser. @returns its id */
export async function attach(driver: DriverAddress): Promise<string> {
  const options = { debuggerAddress: `127.0.0.1:${driver.cdpPort}` };
  const capabilities = { alwaysMatch: { 'goog:chromeOptions': options } };
  const begun = await command(driver, 'POST', '/session', { body: { capabilities } });
  const { sessionId } = begun.value as { sessionId?: string };
  if (sessionId === undefined) throw new Error(`no session: ${JSON.stringify(begun)}`);
  return sessionId;
}

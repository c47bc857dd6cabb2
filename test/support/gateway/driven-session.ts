import { once } from 'node:events';
import { Agent, createServer, request as send, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import type { GatewayOptions } from '#src/roles/gateway/gateway.ts';
import { createDriverUrl } from '#src/roles/gateway/access/urls.ts';
import { startSession } from '#test/support/gateway.fixture.ts';

/** Commands as the API sends them, to a driver that answers with the length of each body. */
export const DRIVER_SESSION = 'a'.repeat(32);

async function startDriver() {
  const commands: string[] = [];
  const driver = createServer((request, response) => {
    commands.push(`${request.method} ${request.url}`);
    const answer = (body: string) => response.end(JSON.stringify({ value: body.length }));
    if (request.url?.endsWith('/slow') !== true) text(request).then(answer, () => undefined);
  });
  driver.listen(0, '127.0.0.1');
  await once(driver, 'listening');
  onTestFinished(() => {
    driver.closeAllConnections();
    driver.close();
  });
  return { port: (driver.address() as AddressInfo).port, commands };
}

/** A gateway with the session `s1` and its driver. */
export async function startDriven(options: Partial<GatewayOptions> = {}) {
  const driver = await startDriver();
  const site = await startSession(options);
  onTestFinished(() => site[Symbol.asyncDispose]());
  const { endpoint: cdp } = site.browser;
  const webdriver = { host: '127.0.0.1', port: driver.port, path: '', cdpPort: cdp.port };
  const s1 = { status: 'active', cdp, vnc: null, webdriver } as const;
  site.directory.set('s1', s1);
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const driverUrl = createDriverUrl(site.http, site.tickets);

  function begin(method: string, path: string, { session = 's1', bytes = 0 } = {}) {
    const headers = bytes === 0 ? {} : { 'content-length': bytes };
    const url = `${driverUrl('org', session, null)}/session/${DRIVER_SESSION}${path}`;
    const sent = send(url, { agent, method, headers });
    sent.on('error', () => undefined);
    return sent;
  }
  async function answerTo(sent: ReturnType<typeof begin>) {
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const body = JSON.parse(await text(response)) as Record<string, unknown>;
    return { status: response.statusCode, headers: response.headers, body };
  }
  const command = (...asked: Parameters<typeof begin>) => answerTo(begin(...asked).end());
  return { ...site, s1, driver, begin, answerTo, command };
}

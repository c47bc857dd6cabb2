import { Agent, request as requestHttp, type IncomingMessage } from 'node:http';
import { Agent as SecureAgent, request as requestHttps } from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** A command to a session's driver, by a gateway. */
export type DriverCommand = {
  method: string;
  /** Below `driverUrl`: `/session`, and what follows. */
  path: string;
  /** Its body and the bytes of that. */
  body: { bytes: number; from: Readable | Uint8Array | string };
  signal: AbortSignal;
};

/** A gateway's answer; `isDrivers`: it is the driver's own, else the gateway has refused. */
export type DriverAnswer = { response: IncomingMessage; isDrivers: boolean };

/** Sends commands to drivers. The client of an answer reads it to its end or destroys it. */
export type Drivers = {
  /** @throws Error where no gateway answers, or where the signal aborts */
  send(driverUrl: string, command: DriverCommand): Promise<DriverAnswer>;
} & Disposable;

/** A gateway gives a command 330 s. */
export const COMMAND_MS = 335_000;
/** Connections to gateways that wait for a next command; a gateway closes them after 30 s. */
const IDLE_MAX = 256;
const IDLE_MS = 4_000;
/** A gateway sets it on what it passes on. */
const PASSED_ON = 'bss-passed-on';

export function createDrivers(): Drivers {
  const options = { keepAlive: true, maxFreeSockets: IDLE_MAX, timeout: IDLE_MS };
  const agents = { plain: new Agent(options), secure: new SecureAgent(options) };
  return {
    async send(driverUrl, { method, path, body, signal }) {
      const url = `${driverUrl}${path}`;
      const headers = {
        'content-type': 'application/json; charset=utf-8',
        'content-length': body.bytes,
      };
      const sent = url.startsWith('https:')
        ? requestHttps(url, { agent: agents.secure, method, headers, signal })
        : requestHttp(url, { agent: agents.plain, method, headers, signal });
      // The agent's time is for idle connections, not for a page that loads.
      sent.setTimeout(0);
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
      sent.once('response', resolve);
      sent.on('error', reject);
      promise.catch(() => undefined);
      // A refusal may come before the body has gone.
      if (body.from instanceof Readable) await Promise.race([pipeline(body.from, sent), promise]);
      else sent.end(body.from);
      const response = await promise;
      return { response, isDrivers: response.headers[PASSED_ON] !== undefined };
    },
    [Symbol.dispose]() {
      agents.plain.destroy();
      agents.secure.destroy();
    },
  };
}

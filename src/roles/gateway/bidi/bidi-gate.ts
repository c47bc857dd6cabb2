import { isRejection, type Rejection } from '#src/kernel/errors.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { joinWebSockets } from '../cdp/cdp.ts';
import type { CdpEndpoint } from '../cdp/own-browser.ts';
import type { Connection } from '../connections/connection.ts';
import { dial } from '../connections/dial.ts';
import type { ClientHandshake } from '../connections/handshake.ts';
import { createBidiProcesses, type BidiLimits } from './bidi-processes.ts';

export type BidiGate = {
  /**
   * Connects a client's WebSocket to WebDriver BiDi for its browser, by a process of its own.
   * `attached`: the capabilities of the client's session of WebDriver, as JSON.
   * Returns null once bytes flow, or a rejection, before anything was sent to the client.
   * @throws DialFailed if the browser, or the process, does not answer
   */
  connect(
    handshake: ClientHandshake,
    cdp: CdpEndpoint,
    connection: Connection,
    more: { attached: string | null; dialTimeoutMs: number },
  ): Promise<Rejection | null>;
  /** The processes that run. */
  pids(): number[];
};

export function createBidiGate(limits: BidiLimits, log: Pick<Logger, 'warn'>): BidiGate {
  const processes = createBidiProcesses(limits, log);
  return {
    pids: () => processes.pids(),
    async connect(handshake, cdp, connection, { attached, dialTimeoutMs }) {
      const { signal } = connection;
      const browser = await dial(cdp, { timeoutMs: dialTimeoutMs, signal });
      const { port, path } = cdp;
      const at = { port, path, attached };
      const started = processes.start(connection.organizationId, browser, at);
      if (isRejection(started)) {
        browser.destroy();
        return started;
      }
      const { client } = started;
      // Of whatever way the connection goes.
      client.once('close', () => started.kill());
      const bound = { timeoutMs: limits.bidiStartMs, signal, at: { port, path: '/session' } };
      return await joinWebSockets(handshake, client, connection, bound);
    },
  };
}

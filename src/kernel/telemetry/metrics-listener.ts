import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { errors, problemBody, reject, type Rejection } from '#src/kernel/errors.ts';
import type { Logger } from './logger.ts';
import { refuseMetrics } from './metrics-access.ts';
import type { Metrics } from './metrics.ts';

/** Prometheus' text format. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
/** Scrapers are few; further connections are closed. */
const CONNECTIONS_MAX = 100;
const ARRIVES_WITHIN_MS = 5_000;

/**
 * Serves only `/metrics`, for a process without the API. Disposal closes all connections at once.
 * @throws Error with code EADDRINUSE if the port is taken
 */
export async function startMetricsListener(options: {
  metrics: Pick<Metrics, 'text'>;
  token: string | null;
  listen: { host: string; port: number };
  log: Logger;
}): Promise<AsyncDisposable> {
  const { metrics, token, listen, log } = options;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refusal = refusalOf(request, token, [listen.host]);
    if (refusal !== null) return refuse(response, refusal);
    const text = await metrics.text();
    response.writeHead(200, { 'content-type': METRICS_TYPE, 'cache-control': 'no-store' });
    response.end(text);
  }
  const server = createServer({ requestTimeout: ARRIVES_WITHIN_MS }, (request, response) => {
    request.resume();
    answer(request, response).catch((error: unknown) => {
      log.error({ err: error }, 'metrics request failed');
      refuse(response, reject('INTERNAL'));
    });
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.listen(listen);
  await once(server, 'listening');
  return {
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function refusalOf(
  request: IncomingMessage,
  token: string | null,
  ownHosts: readonly string[],
): Rejection | null {
  const { method = '', url = '', headers, socket } = request;
  const path = url.split('?', 1)[0] ?? '';
  if (path !== '/metrics') return reject('NOT_FOUND', { path });
  if (method !== 'GET' && method !== 'HEAD')
    return reject('METHOD_NOT_ALLOWED', { method, allow: ['GET', 'HEAD'] });
  return refuseMetrics({ address: socket.remoteAddress, headers }, token, ownHosts);
}

function refuse(response: ServerResponse, rejection: Rejection): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(errors[rejection.code].status, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    ...(rejection.code === 'UNAUTHORIZED' ? { 'www-authenticate': 'Bearer' } : {}),
    ...(rejection.code === 'METHOD_NOT_ALLOWED' ? { allow: 'GET, HEAD' } : {}),
  });
  response.end(JSON.stringify(problemBody(rejection)));
}

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { errors, problemBody, reject, type Rejected } from '#src/errors.ts';
import type { Log } from './logger.ts';
import { refuseMetrics } from './metrics-access.ts';
import type { Metrics } from './metrics.ts';

/** Prometheus' text format. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
/** Scrapers are few; who comes beyond that is cut off. */
const CONNECTIONS_MAX = 100;
const ARRIVES_WITHIN_MS = 5_000;

/**
 * Serves `/metrics` and nothing else, for a process without the API. Disposal ends it at once.
 * @throws where the port is taken (code EADDRINUSE)
 */
export async function startMetricsListener(options: {
  metrics: Pick<Metrics, 'text'>;
  token: string | null;
  listen: { host: string; port: number };
  log: Log;
}): Promise<AsyncDisposable> {
  const { metrics, token, listen, log } = options;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refusal = refusalOf(request, token);
    if (refusal !== null) return refuse(response, refusal);
    const text = await metrics.text();
    response.writeHead(200, { 'content-type': METRICS_TYPE, 'cache-control': 'no-store' });
    response.end(text);
  }
  const server = createServer({ requestTimeout: ARRIVES_WITHIN_MS }, (request, response) => {
    request.resume();
    answer(request, response).catch((error: unknown) => {
      log.error({ err: error }, 'metrics were not told');
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

function refusalOf(request: IncomingMessage, token: string | null): Rejected | null {
  const { method = '', url = '', headers, socket } = request;
  const path = url.split('?', 1)[0] ?? '';
  if (path !== '/metrics') return reject('NOT_FOUND', { path });
  if (method !== 'GET' && method !== 'HEAD')
    return reject('METHOD_NOT_ALLOWED', { method, allow: ['GET', 'HEAD'] });
  return refuseMetrics({ address: socket.remoteAddress, headers }, token);
}

function refuse(response: ServerResponse, rejected: Rejected): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(errors[rejected.rejected].status, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    ...(rejected.rejected === 'UNAUTHORIZED' ? { 'www-authenticate': 'Bearer' } : {}),
    ...(rejected.rejected === 'METHOD_NOT_ALLOWED' ? { allow: 'GET, HEAD' } : {}),
  });
  response.end(JSON.stringify(problemBody(rejected)));
}

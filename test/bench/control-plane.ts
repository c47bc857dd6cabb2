import autocannon from 'autocannon';
import Fastify from 'fastify';
import { DEV_KEY, type RunningService } from '#test/support/service/service.ts';

/** Requests a second of one address under load, and the latency's percentiles in milliseconds. */
export type Throughput = { perSecond: number; p50: number; p99: number; errors: number };

const CONNECTIONS = 50;
const SECONDS = 5;

/** Loads one path of the service. */
export async function load(url: string, seconds = SECONDS): Promise<Throughput> {
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    duration: seconds,
    headers: { authorization: `Bearer ${DEV_KEY}` },
  });
  return {
    perSecond: result.requests.average,
    p50: result.latency.p50,
    p99: result.latency.p99,
    errors: result.errors + result.non2xx,
  };
}

/**
 * A server with one route and nothing else: the limit that the service's routes are compared with.
 */
export async function startBareFastify(): Promise<{ url: string } & AsyncDisposable> {
  const server = Fastify();
  server.get('/', () => ({ hello: 'world' }));
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  return { url: `${url}/`, [Symbol.asyncDispose]: () => server.close() };
}

/** A session to read and a list of `count` to page through; all but the first are stopped. */
export async function prepare(service: RunningService, count: number): Promise<string> {
  const { body } = await service.request('POST', '/api/sessions', {});
  for (let made = 1; made < count; made += 1) {
    const { body: more } = await service.request('POST', '/api/sessions', {});
    await service.request('DELETE', `/api/sessions/${more.id}`);
  }
  return body.id as string;
}

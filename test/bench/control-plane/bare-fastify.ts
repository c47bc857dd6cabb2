/**
 * A server with one route and nothing else, as a separate process like the service: the limit that
 * its routes are compared with. node bare-fastify.ts prints its address. `/text/<n>` answers n
 * bytes, the same text each time.
 */
import Fastify from 'fastify';

const server = Fastify();
server.get('/', () => ({ hello: 'world' }));
const texts = new Map<number, string>();
server.get<{ Params: { length: string } }>('/text/:length', ({ params }, reply) => {
  const length = Number(params.length);
  const text = texts.get(length) ?? JSON.stringify('x'.repeat(length - 2));
  texts.set(length, text);
  return reply.type('application/json; charset=utf-8').send(text);
});
const url = await server.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${url}/\n`);

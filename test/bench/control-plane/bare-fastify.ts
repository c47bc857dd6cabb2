/**
 * A server with one route and nothing else, as a separate process like the service: the limit that
 * its routes are compared with. node bare-fastify.ts prints its address.
 */
import Fastify from 'fastify';

const server = Fastify();
server.get('/', () => ({ hello: 'world' }));
const url = await server.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${url}/\n`);

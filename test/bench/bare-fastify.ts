/**
 * The bare server as a separate process, like the service: node bare-fastify.ts → its URL on
 * stdout.
 */
import { startBareFastify } from './control-plane.ts';

const server = await startBareFastify();
process.stdout.write(`${server.url}\n`);

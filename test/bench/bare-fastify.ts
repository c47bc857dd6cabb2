/**
 * The bare server as a process of its own, as the service is: node bare-fastify.ts → its URL on
 * stdout.
 */
import { startBareFastify } from './control-plane.ts';

const server = await startBareFastify();
process.stdout.write(`${server.url}\n`);

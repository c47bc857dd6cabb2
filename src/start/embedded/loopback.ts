/** Free ports on 127.0.0.1, and a probe of what listens on a port. */
import { connect, createServer } from 'node:net';
import { randomInt } from 'node:crypto';

/**
 * Below the range of ephemeral ports (from 32768 on Linux): there a client that reconnects to a
 * port whose server is down can be assigned that very port as its own, and keep it.
 */
const PORTS = { from: 20_000, to: 32_000 };
const TRIES_MAX = 100;
const CONVERSATION_MS = 1000;

/** A port without a listener; it is not reserved. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const port = randomInt(PORTS.from, PORTS.to);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port found on 127.0.0.1 between ${PORTS.from} and ${PORTS.to}`);
}

async function isFree(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** Sends `question`; whether `answer` comes back within a second. */
export async function answersWith(
  port: number,
  question: string,
  answer: RegExp,
  host = '127.0.0.1',
): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(port, host);
    let received = '';
    const finish = (isAnswered: boolean): void => {
      socket.destroy();
      resolve(isAnswered);
    };
    socket.setEncoding('utf8');
    socket.setTimeout(CONVERSATION_MS, () => finish(false));
    socket.once('connect', () => socket.write(question));
    socket.once('error', () => finish(false));
    socket.once('close', () => finish(false));
    socket.on('data', (text: string) => {
      received += text;
      if (answer.test(received)) finish(true);
    });
  });
}

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** A message as its text in latin1; `subject` of a delivery is where it was published. */
export type RawMessage = { subject: string; reply: string; text: string };

const LINE_END = '\r\n';

/** Bytes that were written and the lines that came back; nothing else is kept. */
export type RawNats = {
  /** Writes the messages at once. */
  publish(...messages: string[]): void;
  close(): void;
};

/** A client of NATS with one subscription, to `<inbox>.>`. */
export async function connectNats(
  url: string,
  inbox: string,
  onMessage: (message: RawMessage) => void,
): Promise<RawNats> {
  const { hostname, port, username: user, password: pass } = new URL(url);
  const socket = await open(hostname, Number(port));
  const login = { verbose: false, pedantic: false, headers: true, no_responders: true };
  const credentials = user === '' ? {} : { user, pass };
  socket.write(
    `CONNECT ${JSON.stringify({ ...login, ...credentials })}\r\nSUB ${inbox}.> 1\r\nPING\r\n`,
  );
  const connected = Promise.withResolvers<void>();
  let rest = '';
  socket.on('data', (bytes: string) => {
    rest += bytes;
    let from = 0;
    for (;;) {
      const end = rest.indexOf(LINE_END, from);
      if (end === -1) break;
      const words = rest.slice(from, end).split(' ');
      const [verb = ''] = words;
      if (verb === 'MSG' || verb === 'HMSG') {
        const size = Number(words.at(-1));
        const begin = end + LINE_END.length;
        if (rest.length < begin + size + LINE_END.length) break;
        const reply = words.length > (verb === 'MSG' ? 4 : 5) ? (words[3] ?? '') : '';
        from = begin + size + LINE_END.length;
        onMessage({ subject: words[1] ?? '', reply, text: rest.slice(begin, begin + size) });
        continue;
      }
      if (verb === '-ERR') throw new Error(rest.slice(from, end));
      if (verb === 'PING') socket.write('PONG\r\n');
      if (verb === 'PONG') connected.resolve();
      from = end + LINE_END.length;
    }
    rest = rest.slice(from);
  });
  await connected.promise;
  return {
    publish: (...messages) => void socket.write(messages.join(''), 'latin1'),
    close: () => void socket.destroy(),
  };
}

/** A message in the protocol of NATS; with headers, if there are some. */
export function published(subject: string, reply: string, head: string, body: string): string {
  const to = reply === '' ? subject : `${subject} ${reply}`;
  return head === ''
    ? `PUB ${to} ${body.length}\r\n${body}\r\n`
    : `HPUB ${to} ${head.length} ${head.length + body.length}\r\n${head}${body}\r\n`;
}

/** A client of Redis for commands that are answered by a number. */
export async function connectRedis(url: string) {
  const { hostname, port } = new URL(url);
  const socket = await open(hostname, Number(port));
  const waiting: (() => void)[] = [];
  let rest = '';
  socket.on('data', (bytes: string) => {
    const lines = (rest + bytes).split(LINE_END);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.startsWith(':')) throw new Error(`Redis: ${line}`);
      waiting.shift()?.();
    }
  });
  return {
    ask(...words: string[]): Promise<void> {
      const parts = words.map((word) => `$${word.length}\r\n${word}\r\n`);
      socket.write(`*${words.length}\r\n${parts.join('')}`, 'latin1');
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push(resolve);
      return promise;
    },
  };
}

async function open(host: string, port: number): Promise<Socket> {
  const socket = connect({ host, port, noDelay: true });
  await once(socket, 'connect');
  return socket.setEncoding('latin1');
}

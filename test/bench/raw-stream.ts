import { connect } from 'node:net';

/** A stream read with a minimal client, since its own work is measured too. */
export type RawStream = {
  /** Sequences in the order of their arrival; `arrivals` has the time of each (`clockMs`). */
  sequences: number[];
  arrivals: number[];
  /** Resolves when the response's head has arrived. */
  opened: Promise<void>;
} & Disposable;

const ID = Buffer.from('\nid: ');
const LINE_END = 10;
/** How the line behind an event's id begins. */
const EVENT = 'e'.charCodeAt(0);
const NOTHING = Buffer.alloc(0);

/** Milliseconds of the machine's monotonic clock, which all its processes share. */
export function clockMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

export function openRawStream(url: string, apiKey: string, lastId: number): RawStream {
  const { hostname, port, pathname } = new URL(url);
  const sequences: number[] = [];
  const arrivals: number[] = [];
  const opened = Promise.withResolvers<void>();
  let rest = NOTHING;

  function onBytes(bytes: Buffer): void {
    const now = clockMs();
    const all = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    rest = NOTHING;
    opened.resolve();
    let from = 0;
    for (let at = all.indexOf(ID); at !== -1; at = all.indexOf(ID, from)) {
      from = all.indexOf(LINE_END, at + ID.length);
      if (from === -1 || from + 1 === all.length) {
        rest = Buffer.from(all.subarray(at));
        return;
      }
      // An id without an event is the position at which the stream begins.
      if (all[from + 1] !== EVENT) continue;
      sequences.push(Number(all.toString('latin1', at + ID.length, from)));
      arrivals.push(now);
    }
    const tail = all.lastIndexOf(LINE_END);
    if (tail !== -1 && all.length - tail < ID.length) rest = Buffer.from(all.subarray(tail));
  }
  const buffer = Buffer.alloc(64 * 1024);
  const socket = connect({
    host: hostname,
    port: Number(port),
    onread: {
      buffer,
      callback(count) {
        onBytes(buffer.subarray(0, count));
        return true;
      },
    },
  });
  socket.on('error', opened.reject);
  const lines = [
    `GET ${pathname} HTTP/1.1`,
    `Host: ${hostname}`,
    `Authorization: Bearer ${apiKey}`,
    `Last-Event-ID: ${lastId}`,
  ];
  socket.write([...lines, '', ''].join('\r\n'));
  return {
    sequences,
    arrivals,
    opened: opened.promise,
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

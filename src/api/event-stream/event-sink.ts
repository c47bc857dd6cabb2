import type { ServerResponse } from 'node:http';

/** What a stream writes to: the open answer of a request. */
export type Sink = {
  /** False where it is full: nothing more is to be written until it drains. */
  write(bytes: Buffer): boolean;
  end(lastBytes?: Buffer): void;
  onDrain(listener: () => void): void;
  /** Called once, however it ended and even if it had before; never before this returns. */
  onClose(listener: () => void): void;
};

/** An ended reader has so long to take the rest; then its connection is cut. */
const LINGER_MS = 10_000;
const END_OF_CHUNK = Buffer.from('\r\n');

/**
 * Sends the head of an answer and leaves the rest to whoever holds the sink. Chunks are framed here
 * and go to the socket at once: that takes half of what it takes the answer itself, and with
 * hundreds of streams is what an event waits for.
 */
export function openSink(answer: ServerResponse, headers: Record<string, string | number>): Sink {
  answer.writeHead(200, headers);
  answer.flushHeaders();
  // A connection that breaks has closed: nobody is left to tell.
  answer.on('error', () => undefined);
  const { socket } = answer;
  // HTTP/1.0 has no chunks; behind an earlier answer on its connection it has no socket yet.
  const outlet = socket !== null && answer.chunkedEncoding ? socket : answer;
  let onDrain: (() => void) | null = null;
  const drained = () => onDrain?.();
  outlet.on('drain', drained);
  answer.once('close', () => outlet.removeListener('drain', drained));

  function write(bytes: Buffer): boolean {
    if (outlet === answer) return answer.write(bytes);
    return outlet.writable && outlet.write(chunkOf(bytes));
  }
  return {
    write,
    end(lastBytes) {
      if (answer.destroyed) return;
      if (lastBytes !== undefined) write(lastBytes);
      answer.end();
      const cut = setTimeout(() => answer.destroy(), LINGER_MS).unref();
      answer.once('close', () => clearTimeout(cut));
    },
    onDrain: (listener) => void (onDrain = listener),
    onClose(listener) {
      if (answer.destroyed) queueMicrotask(listener);
      else answer.once('close', listener);
    },
  };
}

/** The newest chunk: what goes to one reader as a rule goes to hundreds, one after the other. */
let newest: { bytes: Buffer; chunk: Buffer } = {
  bytes: Buffer.alloc(0),
  chunk: Buffer.alloc(0),
};

/** Bytes as a chunk of HTTP/1.1. */
function chunkOf(bytes: Buffer): Buffer {
  if (newest.bytes !== bytes) {
    const size = Buffer.from(`${bytes.length.toString(16)}\r\n`);
    newest = { bytes, chunk: Buffer.concat([size, bytes, END_OF_CHUNK]) };
  }
  return newest.chunk;
}

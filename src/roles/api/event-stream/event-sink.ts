import type { ServerResponse } from 'node:http';

/** The output of a stream: the open response of a request. */
export type Sink = {
  /** False if the buffer is full: write nothing more until it drains. */
  write(bytes: Buffer): boolean;
  end(lastBytes?: Buffer): void;
  onDrain(listener: () => void): void;
  /**
   * Called once, however the response ended, also if it had ended before; never before this
   * returns.
   */
  onClose(listener: () => void): void;
};

/** Time for a reader to take the rest of an ended stream; then its connection is closed. */
const LINGER_MS = 10_000;
const END_OF_CHUNK = Buffer.from('\r\n');

/**
 * Sends the response's head; the caller writes the rest into the sink. Chunks are framed here and
 * go to the socket directly. That takes half the time that the response object needs, and with
 * hundreds of streams this time is the delay of an event.
 */
export function openSink(answer: ServerResponse, headers: Record<string, string | number>): Sink {
  answer.writeHead(200, headers);
  answer.flushHeaders();
  // A broken connection is closed already; there is no client to report it to.
  answer.on('error', () => undefined);
  const { socket } = answer;
  // HTTP/1.0 has no chunks; behind an earlier response on its connection it has no socket yet.
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

/** The newest chunk: the same bytes usually go to hundreds of readers, one after the other. */
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

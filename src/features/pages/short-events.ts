import { connect, type NetConnectOpts } from 'node:net';
import { Duplex, Transform, type TransformCallback } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import type { ClientOptions } from 'ws';

/**
 * A connection to a browser on which long events are shortened as they arrive: the event of a
 * request has all that the page sends in it, twice, of which a call needs nothing. The results of
 * commands, which begin with their id, and what is short pass as they are.
 */

/** What is kept of the begin and of the end of an event that is longer than both. */
export type Kept = { beginBytes: number; endBytes: number };

const HEAD_END = Buffer.from('\r\n\r\n');
const HEAD_BYTES_MAX = 64 * 1024;
const RESULT = Buffer.from('{"id":');
/** A whole message of text. */
const FINAL_TEXT = 0x81;
const MASKED = 0x80;
const TWO_BYTES = 126;
const EIGHT_BYTES = 127;

/** For `ws`: connects, and shortens what comes. */
export function connectShortened(
  kept: Kept,
  isSecure: boolean,
): NonNullable<ClientOptions['createConnection']> {
  function open(options: NetConnectOpts): Duplex {
    // The path is that of the request; here it would be a socket in a folder. `ws` switches Nagle's
    // delay off on the sockets that it opens, and not on a stream that it is given.
    const to = { ...options, path: undefined, noDelay: true } as unknown as NetConnectOpts;
    const socket = isSecure ? connectTls(to) : connect(to);
    const shortened = new EventShortener(kept);
    socket.once('error', (error) => shortened.destroy(error));
    const connection = Duplex.from({ readable: socket.pipe(shortened), writable: socket });
    connection.once('close', () => socket.destroy());
    return connection;
  }
  // Its types have a socket; it needs a stream.
  return open as unknown as NonNullable<ClientOptions['createConnection']>;
}

/** Follows a server's side of a WebSocket (RFC 6455, 5.2), from its answer to the handshake on. */
export class EventShortener extends Transform {
  readonly #kept: Kept;
  #isOpen = false;
  #held: Buffer = Buffer.alloc(0);
  /** Bytes of the payload that pass, and then those that are left out. */
  #passes = 0;
  #skips = 0;

  constructor(kept: Kept) {
    super();
    this.#kept = kept;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    while (this.#step());
    done();
  }

  override _flush(done: TransformCallback): void {
    this.push(this.#held);
    done();
  }

  /** @returns false: more bytes are needed */
  #step(): boolean {
    if (!this.#isOpen) return this.#handshake();
    if (this.#passes > 0) {
      const taken = this.#take(this.#passes);
      this.#passes -= taken.length;
      if (taken.length > 0) this.push(taken);
      return taken.length > 0;
    }
    if (this.#skips > 0) {
      const { length } = this.#take(this.#skips);
      this.#skips -= length;
      // The end of the event, which passes as it is.
      if (this.#skips === 0) this.#passes = this.#kept.endBytes;
      return length > 0;
    }
    return this.#frame();
  }

  #handshake(): boolean {
    const end = this.#held.indexOf(HEAD_END);
    if (end < 0 && this.#held.length < HEAD_BYTES_MAX) return false;
    this.#isOpen = true;
    this.#passes = end < 0 ? Infinity : end + HEAD_END.length;
    return true;
  }

  #frame(): boolean {
    const bytes = this.#held;
    if (bytes.length < 2) return false;
    const short = bytes.readUInt8(1) & ~MASKED;
    const lengthBytes = short === EIGHT_BYTES ? 8 : short === TWO_BYTES ? 2 : 0;
    const isMasked = (bytes.readUInt8(1) & MASKED) !== 0;
    const headLength = 2 + lengthBytes + (isMasked ? 4 : 0);
    if (bytes.length < headLength) return false;
    const length =
      lengthBytes === 8
        ? Number(bytes.readBigUInt64BE(2))
        : lengthBytes === 2
          ? bytes.readUInt16BE(2)
          : short;
    const { beginBytes, endBytes } = this.#kept;
    const isLong = length > beginBytes + endBytes;
    if (!isLong || isMasked || bytes.readUInt8() !== FINAL_TEXT) {
      this.#passes = headLength + length;
      return true;
    }
    const begin = bytes.subarray(headLength, headLength + RESULT.length);
    if (begin.length < RESULT.length) return false;
    if (begin.equals(RESULT)) {
      this.#passes = headLength + length;
      return true;
    }
    this.#take(headLength);
    const head = Buffer.from([FINAL_TEXT, EIGHT_BYTES, 0, 0, 0, 0, 0, 0, 0, 0]);
    head.writeBigUInt64BE(BigInt(beginBytes + endBytes), 2);
    this.push(head);
    this.#passes = beginBytes;
    this.#skips = length - beginBytes - endBytes;
    return true;
  }

  #take(count: number): Buffer {
    const taken = this.#held.subarray(0, count);
    this.#held = this.#held.subarray(taken.length);
    return taken;
  }
}

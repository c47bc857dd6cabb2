import type { IncomingMessage } from 'node:http';

/** A client's WebSocket handshake. */
export type ClientHandshake = {
  request: IncomingMessage;
  /** Bytes that followed its head. */
  head: Buffer;
  /** Headers that its answer gets, also the 101. */
  headers: Record<string, number>;
};

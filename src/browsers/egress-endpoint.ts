import type { Socket } from 'node:net';

/** What a browser needs of its proxy: a way in for its connections. */
export type EgressEndpoint = {
  /**
   * Opens a port on loopback, once. Every program of the machine can connect to it, so each
   * connection is asked about; connections that are `serve`d are the browser's anyway.
   * @returns its number
   */
  listen(isPeer: IsPeer): Promise<number>;
  /** Serves one connection of the browser. */
  serve(socket: Socket): void;
  /** Aborts when nothing is served any more. */
  readonly closed: AbortSignal;
};

/** Whether a connection between two ports of loopback comes from the browser. */
export type IsPeer = (connection: { clientPort: number; serverPort: number }) => Promise<boolean>;

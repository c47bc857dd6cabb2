import type { Socket } from 'node:net';
import type { EgressRules, EgressTraffic } from '#events/egress.ts';

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

/** The proxy of the browser of a session with rules for its connections. */
export type EgressProxy = EgressEndpoint & {
  /** What was counted since the last call; null: nothing. */
  takeTraffic(): EgressTraffic | null;
  [Symbol.asyncDispose](): Promise<void>;
};

/** Port: opens the proxy of the browser of a session with these rules. */
export type OpenEgress = (rules: EgressRules, sessionId: string) => Promise<EgressProxy>;

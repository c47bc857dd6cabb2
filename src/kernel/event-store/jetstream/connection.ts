import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';

/**
 * One connection to JetStream, for all adapters of a process. Disposing lets requests in progress
 * finish.
 */
export type JetStreamConnection = AsyncDisposable & {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  /**
   * Replicas of a new stream: the number requested at connecting, else the default for these
   * servers.
   */
  readonly replicas: number;
  /** A new subject for replies to this connection only. */
  newInbox(): string;
  isConnected(): boolean;
  /**
   * True once connected; false if that takes longer than `withinMs`, or the connection is closed.
   */
  whenConnected(withinMs: number): Promise<boolean>;
  /**
   * The request's answer. Rejects as soon as the connection breaks, since no answer can come after
   * that.
   */
  whileConnected<Answer>(request: Promise<Answer>): Promise<Answer>;
  /** Calls the listener after every reconnect, until the returned function is called. */
  onReconnect(listener: () => void): () => void;
  /** Reports a failure that is answered with a retry and would otherwise stay unnoticed. */
  report(error: unknown, what: string): void;
};

export type ConnectionStatus = 'connected' | 'disconnected';

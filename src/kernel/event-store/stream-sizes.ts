/**
 * Port: the sizes of the event store's streams by name; a stream that does not exist is left out.
 * Adapter: jetstream/jetstream-stream-sizes.ts.
 * @throws Unavailable('event-log')
 */
export type ReadStreamSizes = () => Promise<Readonly<Record<string, StreamSize>>>;

/**
 * `bytes`: what one replica takes; `subjects`: number of distinct ones; `oldestAt`: when the oldest
 * message was stored, ISO 8601 UTC, null if there is none.
 */
export type StreamSize = {
  bytes: number;
  messages: number;
  subjects: number;
  oldestAt: string | null;
};

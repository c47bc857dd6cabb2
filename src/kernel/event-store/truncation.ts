/**
 * Port: removal of the event store's oldest events, once they are sealed in the archive
 * (`src/features/archive`). Only a prefix can be removed; sequences and the rest stay as they are.
 * Adapter: jetstream/jetstream-truncation.ts. Every method throws Unavailable('event-log') if the
 * store does not answer within its bound.
 */
export type LogTruncation = {
  /**
   * Removes all events up to and including the sequence; none if they are gone already. The caller
   * has verified that the archive has them and that no reader still needs them: see `heldBackTo`,
   * and the checkpoints of the projections.
   * @throws RangeError if that includes the newest event, whose sequence is that of the store
   */
  truncate(upTo: number): Promise<void>;

  /**
   * Removes the messages of these events from the stream that organizations read, without the
   * newest message: the publisher continues after it. Does nothing where that stream cannot be
   * truncated. An organization whose consumer was away for longer has a gap.
   */
  truncatePublic(upTo: number): Promise<void>;

  /**
   * The work queue or publisher that is farthest behind, and the sequence up to which it has
   * finished: no event after that may be removed. Null: all of them have finished with the events
   * that were stored at the time of the call.
   */
  heldBackTo(): Promise<{ sequence: number; by: string } | null>;
};

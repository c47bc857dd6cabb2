/**
 * Port: events that a projection or a consumer could not handle and skipped, until an operator
 * decides on them. Adapters: jetstream/jetstream-dead-letters.ts, dead-letters.memory.ts. Survives
 * the loss of the read model. Every method throws Unavailable('event-log') if the server does not
 * answer within 2 s.
 */
export type DeadLetterStore = {
  /**
   * Records that an event was skipped. The first record is kept: a dead letter that exists already,
   * or that an operator has decided to skip, does not change.
   */
  add(event: NewDeadLetter): Promise<void>;
  /** The dead letters without a decision, in the order of the event store; at most 10,000. */
  list(): Promise<DeadLetter[]>;
  /**
   * Has a running consumer of the work queue handle one of the queue's dead letters again. After a
   * success it is a dead letter no more. Waits 30 s at most.
   */
  redeliver(event: DeadLetter): Promise<Redelivered>;
  /** Counts one more attempt that failed; nothing if there is no such dead letter. */
  failedAgain(event: DeadLetterRef): Promise<void>;
  /**
   * Skips the event for good: it is not listed again, even if it is skipped again later.
   * @param reason the operator's, kept with the record of a projection's dead letter
   */
  skip(event: DeadLetterRef, operator: string, reason?: string): Promise<void>;
  /**
   * Removes a dead letter whose event has been handled after all. If the event is skipped again, it
   * becomes a dead letter again.
   */
  resolve(event: DeadLetterRef): Promise<void>;
};

/** `fails`: the reason why it stays a dead letter. */
export type Redelivered = { outcome: 'mended' } | { outcome: 'fails'; reason: string };

/** `by`: the projection's version, or the work queue's name. */
export type DeadLetterRef = { by: string; sequence: number };

export type NewDeadLetter = DeadLetterRef & { subject: string; reason: string };

export type DeadLetter = NewDeadLetter & {
  kind: 'projection' | 'work_queue';
  /** The stream that `sequence` refers to. */
  stream: string;
  /** ISO 8601, when it was first skipped. */
  at: string;
  /** How often it could not be handled: deliveries of a work queue, else folds and retries. */
  attempts: number;
};

/** How many dead letters `list` returns at most. */
export const deadLettersMax = 10_000;

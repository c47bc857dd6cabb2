/**
 * Port: the events that somebody could make nothing of and passed over, until an operator has
 * decided on them. Adapters: parked.jetstream.ts, parked.memory.ts. Survives the loss of the read
 * model. Every method throws Unavailable('event-log') when the log does not answer within 2 s.
 */
export type ParkedEvents = {
  /**
   * Keeps that an event was passed over. The first word on it stands: one that is known already,
   * and one that an operator has decided to skip, stay as they are.
   */
  park(event: Parked): Promise<void>;
  /** Those that nobody has decided on, in the order of the log; at most 10,000. */
  list(): Promise<ParkedEvent[]>;
  /**
   * Has whoever takes from the work queue handle an item of it again that was parked; it is parked
   * no more where that went well. Waits 30 s at most.
   */
  redeliver(event: ParkedEvent): Promise<Redelivered>;
  /** It stays passed over, and is not listed again, however often it is met. */
  skip(event: ParkedRef, operator: string): Promise<void>;
  /** It has been made good. Should it be passed over again, it is parked again. */
  forget(event: ParkedRef): Promise<void>;
};

/** `fails`: why it stays parked. */
export type Redelivered = { outcome: 'mended' } | { outcome: 'fails'; reason: string };

/** `by`: the projection's version, or the work queue's name. */
export type ParkedRef = { by: string; sequence: number };

export type Parked = ParkedRef & { subject: string; reason: string };

export type ParkedEvent = Parked & {
  kind: 'projection' | 'inbox';
  /** The stream that `sequence` is of. */
  stream: string;
  /** ISO 8601, when it was passed over first. */
  at: string;
};

/** What is listed of them. */
export const parkedMax = 10_000;

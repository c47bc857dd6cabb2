import type { Outcome, Progress } from './progress.ts';

/** One attempt at a delivery, as it is kept for the organization to look at. */
export type AttemptRecord = {
  /** The event's id, the id of the delivery; `lost_<sequence>` of an event that is lost. */
  eventId: string;
  /** Empty for an event that is lost. */
  type: string;
  sequence: number;
  /** Number of the attempt, from 1. */
  attempt: number;
  at: string;
  durationMs: number;
  outcome: Outcome;
  /** HTTP status; null: there was no answer. */
  status: number | null;
  /** Why it failed, for people; null: it did not. */
  reason: string | null;
  /** The beginning of the answer's body, as text; null: there was none. */
  excerpt: string | null;
  /** When the next attempt is due, ISO 8601; null: none is. */
  nextAt: string | null;
};

/** The id of the delivery of an event that cannot be read any more. */
export function lostId(sequence: number): string {
  return `lost_${sequence}`;
}

/** A stored progress; `revision` 0: nothing is stored. */
export type StoredProgress = { progress: Progress | null; revision: number };

/**
 * Port: how far webhooks have come, and the last attempts. Adapters:
 * webhook-records.memory.ts, webhook-records.jetstream.ts. Every method throws
 * Unavailable('event-log') if the store does not answer within its bound.
 */
export type WebhookRecords = {
  load(webhookId: string): Promise<StoredProgress>;
  /** Replaces the progress of that revision; null: somebody else has replaced it. */
  save(webhookId: string, progress: Progress, revision: number): Promise<number | null>;
  /** Keeps an attempt; of each webhook the last 500 are kept, for 7 days. */
  note(webhookId: string, attempt: AttemptRecord): Promise<void>;
  /** Removes all of a webhook that is removed. */
  forget(webhookId: string): Promise<void>;
  /** The webhooks that have a progress; of more than 100,000 some are left out. */
  webhookIds(): Promise<string[]>;
  /** The kept attempts, oldest first. */
  attempts(webhookId: string): Promise<AttemptRecord[]>;
};

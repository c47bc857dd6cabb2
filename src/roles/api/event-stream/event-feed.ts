import type { EventQuery } from './event-query.ts';
import type { Sink } from './event-sink.ts';

/** Port: events as Server-Sent Events, backlog and live. */
export type EventFeed = {
  /** Open streams of one organization that this process allows. */
  readonly clientsPerOrganizationMax: number;
  /**
   * Opens a stream into the sink. Returns null if it was opened. `since` begins with the events
   * decided at `subscription.since`, `now` with the next appended event, a sequence with the event
   * after it. The sink is opened with the sequence after which the stream begins.
   * @throws Unavailable if the event store does not answer
   */
  open(opening: {
    subscription: EventQuery['asked'] & { organizationId: string; sessionId: string | null };
    begin: number | 'since' | 'now';
    isAllowed: () => boolean | Promise<boolean>;
    openSink: (after: number) => Sink;
  }): Promise<'organization-full' | 'process-full' | 'ending' | 'ahead' | null>;
  /**
   * Stored events as JSON texts, at most `limit`, from `begin` on. All matching events up to `next`
   * are on this page or before it; there may be fewer than `limit` although more follow. `isMore`:
   * more may be stored already.
   * @throws Unavailable
   */
  page(request: {
    subscription: EventQuery['asked'] & { organizationId: string; sessionId: string | null };
    begin: number | 'since' | 'now';
    limit: number;
    signal: AbortSignal;
  }): Promise<{ events: string[]; next: number; isMore: boolean } | 'ahead'>;
};

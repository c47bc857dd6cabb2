import type { EventQuery } from './event-query.ts';
import type { Sink } from './event-sink.ts';

/** Port: events as Server-Sent Events, backlog and live. */
export type EventFeed = {
  /** Open streams of one organization that this process allows. */
  readonly clientsPerOrganizationMax: number;
  /**
   * Opens a stream into the sink. Returns null if it was opened. `since` begins with the events
   * decided at `subscription.since`, `now` with the next appended event, a sequence with the event
   * after it.
   * @throws Unavailable if the event store does not answer
   */
  open(opening: {
    subscription: EventQuery['asked'] & { organizationId: string; sessionId: string | null };
    begin: number | 'since' | 'now';
    isAllowed: () => boolean | Promise<boolean>;
    openSink: () => Sink;
  }): Promise<'organization-full' | 'process-full' | 'ending' | 'ahead' | null>;
};

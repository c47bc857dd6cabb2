import { BoundedMap } from '#src/kernel/async/bounded-map.ts';
import { EPOCH_MAX, type Ticket, type Tickets } from './ticket.ts';

/**
 * A refused ticket is refused again without a question for so long. The verdict is final: a session
 * that never was, an epoch and a revoked key do not come back.
 */
const REMEMBERED_MS = 5_000;
/** Some 300 bytes each. Beyond it the oldest is dropped, and the leader asked about it again. */
const REMEMBERED_MAX = 10_000;

export type WorthlessTickets = Pick<Tickets, 'open'> & {
  /**
   * Opens a ticket that the API has sealed for its own requests, also one that was found worthless;
   * null: it is none. Clients never have one.
   */
  openOwn(ticket: string): Ticket | null;
  /** The ticket's session was not found, or the ticket was taken back. */
  remember(ticket: string): void;
};

/**
 * Opens tickets, but for those that have been found worthless within the last 5 s: they are like
 * ones that never were. Otherwise each request with one would make the event store's leader read.
 * @param now ms since the epoch
 */
export function leaveOutWorthless(
  tickets: Pick<Tickets, 'open'>,
  now: () => number,
): WorthlessTickets {
  const foundAt = new BoundedMap<string, number>(REMEMBERED_MAX);

  function isRemembered(ticket: string): boolean {
    const at = foundAt.get(ticket);
    return at !== undefined && Math.abs(now() - at) < REMEMBERED_MS;
  }
  return {
    open: (ticket) => (isRemembered(ticket) ? null : tickets.open(ticket)),
    openOwn(ticket) {
      const opened = tickets.open(ticket);
      return opened?.epoch === EPOCH_MAX ? opened : null;
    },
    remember: (ticket) => void foundAt.set(ticket, now()),
  };
}

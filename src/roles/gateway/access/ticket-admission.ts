import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { within } from '#src/kernel/async/timeout.ts';
import { endOfGrant } from '../connections/close-codes.ts';
import type { Connection } from '../connections/connection.ts';
import type { Connections } from '../connections/connections.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { KeyDirectory } from './key-directory.ts';
import type { SessionDirectory, SessionLookup } from './session-directory.ts';
import { endOf as endOfGranted, holdOf, modeOf } from './grant.ts';
import type { Ticket, TicketKind } from './ticket.ts';
import type { WorthlessTickets } from './worthless-tickets.ts';

/** A session with a browser. */
type ActiveSession = Extract<SessionLookup, { status: 'active' }>;

export type Admitted = { connection: Connection; session: ActiveSession };

/**
 * A rejection, and whether the request counts for its client's address: its ticket is worthless (it
 * never was one, or was taken back), or its session has ended, or nothing asked about the ticket.
 */
export type Refused = Rejection & { isOfAddress?: true };

/** The rejection of a request that counts for its client's address. */
export const ofAddress = (rejection: Rejection): Refused => ({ ...rejection, isOfAddress: true });

export type TicketAdmission = {
  /**
   * Verifies the ticket, counts a connection and looks up the browser. The caller must call
   * `closed()` on the connection; a rejection has none.
   */
  admit(kind: TicketKind, ticket: string): Promise<Admitted | Refused>;
  /** The same checks without a connection. */
  check(kind: TicketKind, ticket: string): Promise<ActiveSession | Refused>;
  /** The session's end reason, or `browser_gone` if it is not known yet. Never rejects. */
  endReason(ticket: Ticket): Promise<string>;
  /**
   * The rejection for a connection whose browser could not be reached: the session's end if it has
   * ended, else BROWSER_UNREACHABLE. Never rejects.
   */
  unreachable(connection: Connection, context?: Record<string, unknown>): Promise<Refused>;
};

/** Time-out of `endReason`: after it the reason is `browser_gone`. */
const END_REASON_MS = 300;
/** Time-out of `unreachable`'s question: the client has waited for the browser already. */
const WHY_UNREACHABLE_MS = 1_000;

type AdmissionOptions = {
  tickets: WorthlessTickets;
  sessions: SessionDirectory;
  keys: KeyDirectory;
  connections: Connections;
  lookupTimeoutMs: number;
  /** Milliseconds since the epoch. */
  now: () => number;
  isDraining(): boolean;
  log: Logger;
};

/** Decides whether a ticket is admitted: valid ticket, free connection, session with a browser. */
export function createTicketAdmission(options: AdmissionOptions): TicketAdmission {
  const { tickets, sessions, connections } = options;
  const find = createFinder(options);

  function check(kind: TicketKind, ticket: string): Ticket | Refused {
    if (options.isDraining()) return draining();
    const opened = tickets.open(ticket);
    return opened !== null && isFor(opened, kind) ? opened : worthless();
  }

  /** The session's end reason by the event store; null: not ended, or no answer in time. */
  async function endOf({ organizationId, sessionId }: Ticket, withinMs: number) {
    try {
      const asked = sessions.find(organizationId, sessionId, { fromLeader: true });
      const found = await within(withinMs, asked);
      return found?.status === 'ended' ? found.reason : null;
    } catch {
      return null;
    }
  }

  return {
    async admit(kind, text) {
      const ticket = check(kind, text);
      if (isRejection(ticket)) return ticket;
      const connection = connections.admit(ticket);
      if (isRejection(connection)) {
        // Whether a place is free is the business of those alone whose ticket is worth something.
        const found = await find(ticket, text);
        return isRejection(found) && found.isOfAddress ? found : connection;
      }
      // Counted before the lookup: if the session ends meanwhile, the connection's signal aborts.
      const session = await find(ticket, text);
      if (!isRejection(session)) {
        connections.hold(connection, holdOf(session), session.sequence ?? 0);
        bound(connection, session, options.now());
        return { connection, session };
      }
      connection.closed();
      return session;
    },
    async check(kind, text) {
      const ticket = check(kind, text);
      return isRejection(ticket) ? ticket : await find(ticket, text);
    },
    endReason: async (ticket) => (await endOf(ticket, END_REASON_MS)) ?? 'browser_gone',
    async unreachable(connection, context = {}) {
      if (connection.signal.aborted) return refusalOf(connection);
      const reason = await endOf(connection, WHY_UNREACHABLE_MS);
      return reason === null ? reject('BROWSER_UNREACHABLE', context) : ended(connection, reason);
    },
  };
}

/** Looks up the session of a ticket, and refuses the ticket if it is worth nothing. */
function createFinder(options: AdmissionOptions) {
  const { tickets, sessions, keys, log } = options;
  return async function find(ticket: Ticket, text: string): Promise<ActiveSession | Refused> {
    const { organizationId, sessionId, epoch, holder } = ticket;
    try {
      const [found, isLive] = await within(
        options.lookupTimeoutMs,
        Promise.all([
          findGranted(sessions, ticket),
          holder === null || keys.isLive(organizationId, holder),
        ]),
      );
      // A ticket that was taken back is refused like one that never was. A higher epoch than that
      // of the session is one of which this process has not heard yet: only the service seals it.
      if (found === null || epoch < (found.accessEpoch ?? 0) || !isLive) {
        tickets.remember(text);
        return worthless();
      }
      if (found.status !== 'ended' && endOfGranted(found, ticket.grant) <= options.now())
        return ofAddress(reject('SHARE_ENDED'));
      return browserOf(found, ticket);
    } catch (error) {
      log.error({ err: error, organizationId, sessionId }, 'session lookup failed');
      return reject('UNAVAILABLE', {}, { retryAfterSeconds: 1 });
    }
  };
}

/** Shares and hand-offs are of the screen. */
function isFor(ticket: Ticket, kind: TicketKind): boolean {
  return ticket.kind === kind && (ticket.grant === null || kind === 'vnc');
}

/** A share or a hand-off of which this process has not heard is looked up at the leader. */
async function findGranted(
  sessions: SessionDirectory,
  { organizationId, sessionId, grant }: Ticket,
): Promise<SessionLookup | null> {
  const found = await sessions.find(organizationId, sessionId);
  if (grant === null || found === null || found.status === 'ended') return found;
  return endOfGranted(found, grant) > 0
    ? found
    : await sessions.find(organizationId, sessionId, { fromLeader: true });
}

/** What its share or its hand-off allows a connection, and for how long. */
function bound(connection: Connection, session: ActiveSession, now: number): void {
  const { grant } = connection;
  if (grant === null) return;
  connection.endIn(endOfGranted(session, grant) - now, endOfGrant[grant.kind]);
  if (modeOf(session, grant) === 'view') connection.onlyWatches();
}

/** The session, if it has what this ticket is for. */
function browserOf(found: SessionLookup, ticket: Ticket): ActiveSession | Refused {
  if (found.status === 'active')
    return ticket.kind === 'vnc' && found.vnc === null ? noScreen() : found;
  if (found.status === 'ended') return ofAddress(ended(ticket, found.reason));
  const context = { session_id: ticket.sessionId, status: found.status };
  return reject('SESSION_NOT_READY', context, { retryAfterSeconds: 1 });
}

/** The rejection for the screen of a headless session. */
export function noScreen(): Rejection {
  return reject('NOT_FOUND', {}, { message: 'A headless session has no screen.' });
}

/** The rejection for a connection that was ended before any byte flowed. */
export function refusalOf(connection: Connection): Refused {
  const reason = connection.endedBy;
  return reason === null || reason === 'gateway_closing' || reason === 'client_gone'
    ? draining()
    : reason === 'access_rotated' || reason === 'key_revoked'
      ? worthless()
      : reason === endOfGrant.share || reason === endOfGrant.handoff
        ? ofAddress(reject('SHARE_ENDED'))
        : ended(connection, reason);
}

/** The rejection for a ticket that leads nowhere: the same for all of them. */
function worthless(): Refused {
  return ofAddress(reject('NOT_FOUND'));
}

function ended({ sessionId }: Pick<Ticket, 'sessionId'>, reason: string): Rejection {
  return reject('SESSION_ENDED', { session_id: sessionId, ended_reason: reason });
}

function draining(): Rejection {
  return reject(
    'UNAVAILABLE',
    {},
    { message: 'The gateway is restarting; connect again.', retryAfterSeconds: 1 },
  );
}

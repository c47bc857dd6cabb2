import { isRejected, reject, type Rejected } from '#src/errors.ts';
import type { Connection } from '../connections/connection.ts';
import type { Connections } from '../connections/connections.ts';
import type { GatewayLog } from '../gateway-log.ts';
import type { SessionDirectory, SessionLookup } from './session-directory.ts';
import type { Ticket, TicketKind, Tickets } from './ticket.ts';

/** A session that has its browser. */
type ActiveSession = Extract<SessionLookup, { status: 'active' }>;

export type Entered = { connection: Connection; session: ActiveSession };

export type Admission = {
  /**
   * From a ticket to a counted connection and its browser's address. Whoever gets a connection must
   * see to its `closed()`; a refusal has none.
   */
  enter(kind: TicketKind, ticket: string): Promise<Entered | Rejected>;
  /** The same answer, without a connection. */
  look(kind: TicketKind, ticket: string): Promise<ActiveSession | Rejected>;
  /** Why a session's browser is gone, as far as the directory knows by now. */
  whyGone(ticket: Ticket): Promise<string>;
};

/** After this a session that has just ended may be told as "the browser is gone". */
const WHY_GONE_MS = 300;

/** The way in: is this a ticket, is there room, is there a browser? */
export function createAdmission(options: {
  tickets: Tickets;
  sessions: SessionDirectory;
  connections: Connections;
  lookupTimeoutMs: number;
  isDraining(): boolean;
  log: GatewayLog;
}): Admission {
  const { tickets, sessions, connections, log } = options;

  function check(kind: TicketKind, ticket: string): Ticket | Rejected {
    if (options.isDraining()) return draining();
    const opened = tickets.open(ticket);
    return opened === null || opened.kind !== kind ? reject('NOT_FOUND') : opened;
  }

  async function find(ticket: Ticket): Promise<ActiveSession | Rejected> {
    const { organizationId, sessionId } = ticket;
    try {
      const found = await within(options.lookupTimeoutMs, sessions.find(organizationId, sessionId));
      if (found === null) return reject('NOT_FOUND');
      if (found.status === 'active') return found;
      return found.status === 'ended'
        ? ended(found.reason)
        : reject('SESSION_NOT_READY', {}, { retryAfterSeconds: 1 });
    } catch (error) {
      log.error({ err: error, organizationId, sessionId }, 'session not looked up');
      return reject('UNAVAILABLE', {}, { retryAfterSeconds: 1 });
    }
  }

  return {
    async enter(kind, text) {
      const ticket = check(kind, text);
      if (isRejected(ticket)) return ticket;
      const connection = connections.admit(ticket);
      if (isRejected(connection)) return connection;
      // Counted before it is looked up: an end that comes while we look aborts its signal.
      const session = await find(ticket);
      if (!isRejected(session)) return { connection, session };
      connection.closed();
      return session;
    },
    async look(kind, text) {
      const ticket = check(kind, text);
      return isRejected(ticket) ? ticket : await find(ticket);
    },
    async whyGone({ organizationId, sessionId }) {
      try {
        const found = await within(WHY_GONE_MS, sessions.find(organizationId, sessionId));
        return found?.status === 'ended' ? found.reason : 'browser_gone';
      } catch {
        return 'browser_gone';
      }
    },
  };
}

/** What a connection that was ended before any byte flowed is told. */
export function refusalOf(connection: Connection): Rejected {
  const reason = connection.endedBy;
  return reason === null || reason === 'gateway_closing' || reason === 'client_gone'
    ? draining()
    : ended(reason);
}

function ended(reason: string): Rejected {
  return reject('SESSION_ENDED', { reason });
}

function draining(): Rejected {
  return reject(
    'UNAVAILABLE',
    {},
    { message: 'The gateway is restarting; connect again.', retryAfterSeconds: 1 },
  );
}

/** @throws Error after `ms`; the promise itself goes on unheard. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

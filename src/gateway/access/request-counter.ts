import type { IncomingMessage } from 'node:http';
import { reject, type Rejection } from '#src/errors.ts';
import {
  createLocalLimiter,
  rateLimitHeaders,
  secondsToReset,
  type Allowance,
} from '#src/http/rate-window.ts';
import { networkOf } from '#src/http/address.ts';
import type { Route } from '../routes.ts';
import type { Tickets } from './ticket.ts';

/** Requests in a minute at one gateway process, plain ones and handshakes together. */
export type RequestLimits = {
  /** With one ticket. */
  requestsPerTicket: number;
  /** With all tickets of one organization. */
  requestsPerOrganization: number;
  /** Of one address without a valid ticket: unknown tickets and paths, the viewer's files. */
  requestsPerAddress: number;
};

/** A counted request: the headers of its answer, and why it is refused; null: it is not. */
export type CountedRequest = {
  of: 'ticket' | 'organization' | 'address';
  headers: Record<string, number>;
  refusal: Rejection | null;
};

export type RequestCounter = {
  /** @param route null: no such route */
  count(request: IncomingMessage, route: Route | null): CountedRequest;
  /** The same for bytes from this address that are no request. */
  countMalformed(address: string): CountedRequest;
  /**
   * Counts a request whose ticket leads nowhere, as one of a session that never was, for its
   * client's address: the answer is that to an unknown ticket, its headers included.
   */
  countAsUnknown(request: IncomingMessage, counted: CountedRequest): CountedRequest;
};

/**
 * Counts a request once for its ticket and once for the organization; one without a valid ticket
 * for its client's address. The answer tells the allowance that is used up first. A request that
 * its ticket's limit refuses is not counted for the organization: one session cannot use up what
 * the others have.
 */
export function createRequestCounter(options: {
  tickets: Pick<Tickets, 'open'>;
  clientOf: (request: IncomingMessage) => string;
  limits: RequestLimits;
  now: () => number;
}): RequestCounter {
  const { tickets, clientOf, limits, now } = options;
  // Apart, so that requests from many addresses push no ticket's count out of the bounded map.
  const takeOfAddress = createLocalLimiter(now);
  const takeOfTicket = createLocalLimiter(now);
  const takeOfOrganization = createLocalLimiter(now);

  function counted(of: CountedRequest['of'], allowance: Allowance): CountedRequest {
    const headers = rateLimitHeaders(allowance);
    if (allowance.isAllowed) return { of, headers, refusal: null };
    const retryAfterSeconds = secondsToReset(allowance, now());
    const context = { of, limit: allowance.limit };
    const refusal = reject('RATE_LIMIT_EXCEEDED', context, { retryAfterSeconds });
    return { of, headers, refusal };
  }
  const countMalformed = (address: string) =>
    counted('address', takeOfAddress(networkOf(address), limits.requestsPerAddress));

  return {
    countMalformed,
    countAsUnknown: (request, known) =>
      known.of === 'address' ? known : countMalformed(clientOf(request)),
    count(request, route) {
      const ticket = route !== null && 'ticket' in route ? tickets.open(route.ticket) : null;
      if (ticket === null) return countMalformed(clientOf(request));
      const { kind, organizationId, sessionId } = ticket;
      const key = `${kind}/${organizationId}/${sessionId}`;
      const byTicket = takeOfTicket(key, limits.requestsPerTicket);
      if (!byTicket.isAllowed) return counted('ticket', byTicket);
      const byOrganization = takeOfOrganization(organizationId, limits.requestsPerOrganization);
      return !byOrganization.isAllowed || byOrganization.remaining < byTicket.remaining
        ? counted('organization', byOrganization)
        : counted('ticket', byTicket);
    },
  };
}

import type { IncomingMessage } from 'node:http';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import {
  createLocalLimiter,
  rateLimitHeaders,
  secondsToReset,
  type Allowance,
} from '#src/kernel/http/rate-window.ts';
import { networkOf } from '#src/kernel/http/address.ts';
import type { Route } from '../routes.ts';
import type { WorthlessTickets } from './worthless-tickets.ts';

/** Requests in a minute at one gateway process, plain ones and handshakes together. */
export type RequestLimits = {
  /** With one ticket, if it is worth something: neither taken back nor of an ended session. */
  requestsPerTicket: number;
  /** With all such tickets of one organization. */
  requestsPerOrganization: number;
  /** Commands of WebDriver for one session; its driver takes them one by one. */
  commandsPerTicket: number;
  commandsPerOrganization: number;
  /** Of one address without such a ticket: worthless and ended ones, unknown paths, files. */
  requestsPerAddress: number;
};

/** A counted request: the headers of its answer, and why it is refused; null: it is not. */
export type CountedRequest = {
  of: 'ticket' | 'organization' | 'address';
  headers: Record<string, number>;
  refusal: Rejection | null;
  /** The API's own request for an organization, whatever session its caller has named. */
  isOwn: boolean;
  /** Takes back what was counted, in the window in which it was. */
  giveBack(): void;
};

export type RequestCounter = {
  /** @param route null: no such route */
  count(request: IncomingMessage, route: Route | null): CountedRequest;
  /** The same for bytes from this address that are no request. */
  countMalformed(address: string): CountedRequest;
  /**
   * Counts a request for its client's address instead, because its ticket was not admitted: the
   * answer to a worthless ticket is that to an unknown one, its headers included. The ticket and
   * its organization get back what it took of them. The API's own requests stay with the
   * organization: the address is that of all.
   */
  countForAddress(request: IncomingMessage, counted: CountedRequest): CountedRequest;
};

/**
 * Counts a request once for its ticket and once for the organization; one without a valid ticket
 * for its client's address. The answer tells the allowance that is used up first. A request that
 * its ticket's limit refuses is not counted for the organization: one session cannot use up what
 * the others have. Whether a ticket is admitted is known later, so it is counted first and given
 * back: a client whose address has used up its limit still connects with a valid ticket.
 */
export function createRequestCounter(options: {
  tickets: Pick<WorthlessTickets, 'open' | 'openOwn'>;
  clientOf: (request: IncomingMessage) => string;
  limits: RequestLimits;
  now: () => number;
}): RequestCounter {
  const { tickets, clientOf, limits, now } = options;
  // Apart, so that requests from many addresses push no ticket's count out of the bounded map.
  const takeOfAddress = createLocalLimiter(now);
  const takeOfTicket = createLocalLimiter(now);
  const takeOfOrganization = createLocalLimiter(now);
  const takeOfDriver = createLocalLimiter(now);
  const takeOfDrivers = createLocalLimiter(now);

  function counted(
    of: CountedRequest['of'],
    allowance: Allowance,
    { giveBack = () => {}, isOwn = false }: Partial<CountedRequest> = {},
  ): CountedRequest {
    const headers = rateLimitHeaders(allowance);
    if (allowance.isAllowed) return { of, headers, refusal: null, isOwn, giveBack };
    const retryAfterSeconds = secondsToReset(allowance, now());
    const context = { of, limit: allowance.limit };
    const refusal = reject('RATE_LIMIT_EXCEEDED', context, { retryAfterSeconds });
    return { of, headers, refusal, isOwn, giveBack };
  }
  const countMalformed = (address: string) =>
    counted('address', takeOfAddress(networkOf(address), limits.requestsPerAddress));

  return {
    countMalformed,
    countForAddress(request, known) {
      if (known.of === 'address' || known.isOwn) return known;
      known.giveBack();
      return countMalformed(clientOf(request));
    },
    count(request, route) {
      const key = route !== null && 'ticket' in route ? route.ticket : null;
      const isCommand = route?.to === 'webdriver';
      const own = key === null || !isCommand ? null : tickets.openOwn(key);
      const ticket = key === null ? null : (own ?? tickets.open(key));
      if (key === null || ticket === null) return countMalformed(clientOf(request));
      const { organizationId } = ticket;
      const isOwn = own !== null;
      const [ofTicket, ofOrganization] = isCommand
        ? [takeOfDriver, takeOfDrivers]
        : [takeOfTicket, takeOfOrganization];
      const [perTicket, perOrganization] = isCommand
        ? [limits.commandsPerTicket, limits.commandsPerOrganization]
        : [limits.requestsPerTicket, limits.requestsPerOrganization];
      const byTicket = ofTicket(key, perTicket);
      if (!byTicket.isAllowed) return counted('ticket', byTicket, { isOwn });
      const byOrganization = ofOrganization(organizationId, perOrganization);
      const giveBack = (): void => {
        ofTicket.giveBack(key, byTicket);
        ofOrganization.giveBack(organizationId, byOrganization);
      };
      return !byOrganization.isAllowed || byOrganization.remaining < byTicket.remaining
        ? counted('organization', byOrganization, { giveBack, isOwn })
        : counted('ticket', byTicket, { giveBack, isOwn });
    },
  };
}

import type { IncomingMessage } from 'node:http';
import type { Refused } from './access/ticket-admission.ts';
import { refusePages } from './ports/own-clients.ts';
import { parsePortRoute, parseRoute, type Route } from './routes.ts';

/** How requests come in: by the gateway's public ports, or by the port of one session. */
export type Door = {
  /** null: no such route. */
  routeOf(request: IncomingMessage): Route | null;
  /** The refusal of a request that may not come in here; null: it may. */
  guard(request: IncomingMessage): Refused | null;
  /** The beginning of addresses in answers: `ws://host:port`, or `wss:` if it came by TLS. */
  prefixFor(request: IncomingMessage): string;
};

/** The gateway's own ports, for all sessions. */
export function publicDoor(prefixFor: Door['prefixFor']): Door {
  return { routeOf: parseRoute, guard: () => null, prefixFor };
}

/** The port of this ticket's session. @param at its `host:port` */
export function portDoor(ticket: string, host: string, at: string): Door {
  return {
    routeOf: (request) => parsePortRoute(request, ticket),
    guard: (request) => refusePages(request, host),
    prefixFor: () => `ws://${at}`,
  };
}

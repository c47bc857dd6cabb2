import type { IncomingMessage, ServerResponse } from 'node:http';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import type { Tickets } from '../access/ticket.ts';
import type { Refused, TicketAdmission } from '../access/ticket-admission.ts';
import { sendJson } from '../error-response.ts';
import type { DebuggerPorts } from './debugger-ports.ts';

/**
 * `POST` opens a port for the ticket: `{address: "host:port"}`. `DELETE` closes all of its session:
 * `{closed: 2}`. The API asks this for its callers.
 */
export async function answerPorts(
  text: string,
  { request, response }: { request: IncomingMessage; response: ServerResponse },
  {
    ports,
    admission,
    tickets,
  }: {
    ports: DebuggerPorts | null;
    admission: Pick<TicketAdmission, 'check'>;
    tickets: Pick<Tickets, 'open'>;
  },
): Promise<Refused | null> {
  const found = await admission.check('cdp', text);
  if (isRejection(found)) return found;
  const ticket = tickets.open(text);
  if (ticket === null) return reject('NOT_FOUND');
  if (ports === null) return reject('DEBUGGER_PORTS_OFF');
  if (request.method === 'DELETE') {
    const closed = ports.closeSession(ticket.organizationId, ticket.sessionId);
    await ports.whenClosed();
    sendJson(response, JSON.stringify({ closed }));
    return null;
  }
  async function isWorth(other: string): Promise<Rejection | null> {
    const checked = await admission.check('cdp', other);
    return isRejection(checked) && checked.code !== 'UNAVAILABLE' ? checked : null;
  }
  const address = await ports.open(text, ticket, isWorth);
  if (typeof address !== 'string') return address;
  sendJson(response, JSON.stringify({ address }));
  return null;
}

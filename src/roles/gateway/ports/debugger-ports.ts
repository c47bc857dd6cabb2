import { thirdOf } from '#src/kernel/async/places.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import type { Ticket } from '../access/ticket.ts';
import type { Handlers } from '../listeners.ts';
import { createPortTable } from './port-table.ts';

/** Where sessions may have ports of their own. */
export type DebuggerPortsOptions = {
  /** Each one may be given away; one that another program has is passed over. */
  ports: readonly number[];
  /** The address that they are bound to. */
  bind: string;
  /** The host in the answer. */
  host: string;
};

/**
 * Ports that lead to one session each, for clients that take a host and a port alone. A port
 * belongs to a ticket, and closes when that is worth nothing any more. Ports are of this process.
 */
export type DebuggerPorts = {
  /**
   * `host:port` for this ticket, the same one for as long as it is open. `isWorth` is asked once
   * the port listens, because the session may have ended meanwhile.
   */
  open(text: string, ticket: Ticket, isWorth: IsWorth): Promise<string | Rejection>;
  /** Closes the session's ports; those of tickets of a lower epoch only, if one is given. */
  closeSession(organizationId: string, sessionId: string, belowEpoch?: number): number;
  /** Closes the ports of the organization's tickets whose key is not live. */
  closeRevoked(organizationId: string, liveHolders: ReadonlySet<string>): number;
  /** Resolves once the ports that are being closed take no client any more. */
  whenClosed(): Promise<void>;
} & AsyncDisposable;

/** Null: the ticket still opens a session with a browser. */
type IsWorth = (text: string) => Promise<Rejection | null>;

/** @param handlersFor what is served on the port of this ticket, at this `host:port` */
export function createDebuggerPorts(
  { ports, bind, host }: DebuggerPortsOptions,
  handlersFor: (text: string, address: string) => Handlers,
): DebuggerPorts {
  const name = host.includes(':') ? `[${host}]` : host;
  const addressOf = (port: number): string => `${name}:${port}`;
  const table = createPortTable({ ports, bind }, (text, port) =>
    handlersFor(text, addressOf(port)),
  );
  /** One organization leaves two thirds of the ports to the others. */
  const perOrganization = thirdOf(ports.length);

  /** Closes ports whose end this process missed. */
  async function closeWorthless(isWorth: IsWorth): Promise<void> {
    const asked = table.live().map(async (one) => {
      if ((await isWorth(one.text)) !== null) await table.close(one);
    });
    await Promise.all(asked);
  }
  function tooMany({ organizationId }: Ticket): Rejection | null {
    const isTheirs = (one: { ticket: Ticket }) => one.ticket.organizationId === organizationId;
    return table.live().filter(isTheirs).length < perOrganization
      ? null
      : reject('DEBUGGER_PORT_LIMIT_EXCEEDED', { of: 'organization', limit: perOrganization });
  }
  async function openNew(text: string, ticket: Ticket, isWorth: IsWorth) {
    const isFull = tooMany(ticket) !== null || table.live().length >= ports.length;
    if (isFull) await closeWorthless(isWorth);
    return tooMany(ticket) ?? (await table.openFree(text, ticket));
  }

  return {
    async open(text, ticket, isWorth) {
      const known = table.live().find((one) => one.text === text);
      await known?.listener.catch(() => null);
      if (known !== undefined && table.live().includes(known)) return addressOf(known.port);
      const opened = await openNew(text, ticket, isWorth);
      if (opened === null)
        return reject('DEBUGGER_PORT_LIMIT_EXCEEDED', { of: 'gateway', limit: ports.length });
      if ('code' in opened) return opened;
      const worthless = await isWorth(text);
      if (worthless === null) return addressOf(opened.port);
      await table.close(opened);
      return worthless;
    },
    closeSession: (organizationId, sessionId, belowEpoch = Infinity) =>
      table.closeWhere(
        (ticket) =>
          ticket.organizationId === organizationId &&
          ticket.sessionId === sessionId &&
          ticket.epoch < belowEpoch,
      ),
    closeRevoked: (organizationId, liveHolders) =>
      table.closeWhere(
        (ticket) =>
          ticket.organizationId === organizationId &&
          ticket.holder !== null &&
          !liveHolders.has(ticket.holder),
      ),
    whenClosed: () => table.whenClosed(),
    async [Symbol.asyncDispose]() {
      table.closeWhere(() => true);
      await table.whenClosed();
    },
  };
}

import type { Socket } from 'node:net';
import { within } from '#src/kernel/async/timeout.ts';
import type { Ticket } from '../access/ticket.ts';
import { startListener, type Handlers } from '../listeners.ts';

/** A port that is open for a ticket, or that is being opened or closed. */
export type OpenPort = {
  text: string;
  ticket: Ticket;
  port: number;
  sockets: Set<Socket>;
  listener: Promise<AsyncDisposable>;
  isClosing: boolean;
};

export type PortTable = {
  /** Those that are not being closed. */
  live(): OpenPort[];
  /** Opens the first port that is free; null: none is. */
  openFree(text: string, ticket: Ticket): Promise<OpenPort | null>;
  /** Ends the port's sockets. It is free for another ticket once nothing listens on it. */
  close(one: OpenPort): Promise<void>;
  /** Closes those that are meant; returns how many. */
  closeWhere(isMeant: (ticket: Ticket) => boolean): number;
  /** Resolves once all that are being closed are. */
  whenClosed(): Promise<void>;
};

/** A session's clients, documents beside them, and some to spare. */
const SOCKETS_MAX = 128;
/** How long a port's listener may take to close; the port is given away again then. */
const CLOSE_MS = 2_000;

/**
 * Listeners on a range of ports, at most one a ticket and one a port.
 * @param handlersFor what is served on the port of this ticket
 */
export function createPortTable(
  { ports, bind }: { ports: readonly number[]; bind: string },
  handlersFor: (text: string, port: number) => Handlers,
): PortTable {
  const open = new Map<number, OpenPort>();
  const closing = new Set<Promise<void>>();
  const live = (): OpenPort[] => [...open.values()].filter(({ isClosing }) => !isClosing);

  function listen(text: string, ticket: Ticket, port: number): OpenPort {
    const sockets = new Set<Socket>();
    const handlers = handlersFor(text, port);
    function onSocket(socket: Socket): boolean {
      if (!handlers.onSocket(socket)) return false;
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
      return true;
    }
    const place = { host: bind, port, methodsInAnyCase: true };
    const listener = startListener(place, { ...handlers, onSocket }, SOCKETS_MAX);
    const opened = { text, ticket, port, sockets, listener, isClosing: false };
    open.set(port, opened);
    return opened;
  }

  async function close(one: OpenPort): Promise<void> {
    if (one.isClosing) return;
    one.isClosing = true;
    const listener = await one.listener.catch(() => null);
    const disposal = listener?.[Symbol.asyncDispose]();
    const destroyAll = (): void => {
      for (const socket of one.sockets) socket.destroy();
    };
    destroyAll();
    await within(CLOSE_MS, Promise.resolve(disposal), destroyAll);
    if (open.get(one.port) === one) open.delete(one.port);
  }

  return {
    live,
    close,
    async openFree(text, ticket) {
      for (const port of ports) {
        if (open.has(port)) continue;
        const opened = listen(text, ticket, port);
        try {
          await opened.listener;
          return opened;
        } catch {
          open.delete(port); // another program has it
        }
      }
      return null;
    },
    closeWhere(isMeant) {
      const meant = live().filter(({ ticket }) => isMeant(ticket));
      for (const one of meant) {
        const closed = close(one).finally(() => closing.delete(closed));
        closing.add(closed);
      }
      return meant.length;
    },
    async whenClosed() {
      await Promise.all(closing);
    },
  };
}

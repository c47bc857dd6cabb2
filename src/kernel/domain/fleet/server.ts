import type { ServerEvent, ServerState } from '#events/server.ts';

type DataOf<Type extends ServerEvent['type']> = Extract<ServerEvent, { type: Type }>['data'];

export type ServerCommand =
  | ({ type: 'Join' } & DataOf<'server.joined'>)
  /** From the provisioner: new browsers are launched from this build. */
  | ({ type: 'UpdateBrowser' } & DataOf<'server.browser-updated'>)
  /** From the operator: no new sessions on this server. */
  | { type: 'Drain' }
  | { type: 'Undrain' }
  /** From the provisioner: the draining server has no browser left. */
  | { type: 'ReportDrained' }
  | ({ type: 'ResizePool' } & DataOf<'server.pool-resized'>)
  | ({ type: 'ReportReconciled' } & DataOf<'server.reconciled'>)
  /** Its browsers keep running, and the server's next provisioner is to adopt them. */
  | { type: 'Restart' }
  | { type: 'Leave' }
  | { type: 'ReportLost' };

/**
 * A server may join any number of times: each start of its provisioner is a `joined`. Draining
 * outlasts such a start; it ends when the operator undrains the server, or with the server.
 */
export function decideServer(command: ServerCommand, server: ServerState | null): ServerEvent[] {
  if (command.type === 'Join') {
    const { type: _, ...data } = command;
    const joined: ServerEvent = { type: 'server.joined', data };
    const isDraining = server?.status === 'draining' || server?.status === 'drained';
    return isDraining ? [joined, { type: 'server.draining', data: {} }] : [joined];
  }
  if (server === null || server.status === 'left' || server.status === 'lost') return [];
  switch (command.type) {
    case 'UpdateBrowser': {
      const { type: _, egress, ...build } = command;
      const { version, builtAt } = server.browser ?? {};
      const isSame = build.version === version && build.builtAt === builtAt;
      const isKept = egress === undefined || egress === (server.egress ?? null);
      if (isSame && isKept) return [];
      const data = { ...build, ...(isKept ? {} : { egress }) };
      return [{ type: 'server.browser-updated', data }];
    }
    case 'Drain':
      return server.status === 'live' ? [{ type: 'server.draining', data: {} }] : [];
    case 'Undrain':
      return server.status === 'live' ? [] : [{ type: 'server.undrained', data: {} }];
    case 'ReportDrained':
      return server.status === 'draining' ? [{ type: 'server.drained', data: {} }] : [];
    case 'ResizePool': {
      const { type: _, ...data } = command;
      return [{ type: 'server.pool-resized', data }];
    }
    case 'ReportReconciled': {
      const { type: _, ...data } = command;
      return [{ type: 'server.reconciled', data }];
    }
    case 'Restart':
      return [{ type: 'server.restarting', data: {} }];
    case 'Leave':
      return [{ type: 'server.left', data: {} }];
    case 'ReportLost':
      return [{ type: 'server.lost', data: {} }];
  }
}

/** @throws RangeError for an event before `joined`, which no valid history contains. */
export function evolveServer(
  server: ServerState | null,
  event: ServerEvent,
  id: string,
): ServerState {
  if (event.type === 'server.joined') {
    const { ip, poolMax, browser, egress } = event.data;
    const learned = server?.bursts === undefined ? {} : { bursts: server.bursts };
    return {
      id,
      ip,
      poolMax,
      status: 'live',
      ...(browser && { browser }),
      ...(egress && { egress }),
      ...learned,
    };
  }
  if (server === null)
    throw new RangeError(`${event.type} before server.joined: the history is incomplete`);
  switch (event.type) {
    case 'server.browser-updated': {
      const { egress: changed, ...browser } = event.data;
      const { egress: before, ...others } = server;
      const egress = changed === undefined ? before : changed;
      return { ...others, browser, ...(egress && { egress }) };
    }
    case 'server.draining':
      return { ...server, status: 'draining' };
    case 'server.drained':
      return { ...server, status: 'drained' };
    case 'server.undrained':
      return { ...server, status: 'live' };
    case 'server.pool-resized': {
      const { inputs, decision } = event.data;
      const { target, limitedBy } = decision;
      const learned = inputs.bursts === undefined ? {} : { bursts: inputs.bursts };
      return { ...server, pool: { target, limitedBy }, ...learned };
    }
    case 'server.reconciled':
      return { ...server, leaks: event.data.leaks };
    case 'server.restarting':
    case 'server.carried-forward':
      return server;
    case 'server.left':
      return { ...server, status: 'left' };
    case 'server.lost':
      return { ...server, status: 'lost' };
  }
}

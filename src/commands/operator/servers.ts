import type { EventMetadata } from '#events/envelope.ts';
import { isOf } from '#events/events.ts';
import type { ServerState } from '#events/server.ts';
import { filters } from '#events/subjects.ts';
import { handleCommand, type CommandContext } from '#src/commands/handle-command.ts';
import { decideServer, type ServerCommand } from '#src/kernel/domain/fleet/server.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';

/**
 * The state of each server; servers are found by the events that begin and end their lives.
 * @param warn called for each event that cannot be read
 */
export async function readServers(
  eventStore: EventStore,
  warn: (text: string) => void,
): Promise<ServerState[]> {
  const ids = new Set<string>();
  for await (const event of readEvents(eventStore, filters.serverLives, warn))
    if (isOf('server', event)) ids.add(event.aggregate.id);
  const states: ServerState[] = [];
  for (const id of ids) {
    const { state } = await loadState<'server'>(
      eventStore,
      { kind: 'server', id },
      { fromLeader: true },
    );
    if (state !== null) states.push(state);
  }
  return states;
}

/** A server as the API and the command line show it: the names of the schema `OperatorServer`. */
export function presentServer({ id, ip, status, poolMax, pool, leaks, browser }: ServerState) {
  return {
    id,
    ip,
    status,
    pool_max: poolMax,
    browser: browser?.version ?? null,
    browser_built_at: browser?.builtAt ?? null,
    target: pool?.target ?? null,
    limited_by: pool?.limitedBy ?? null,
    leaks: leaks === undefined ? null : leaks.browsers + leaks.sessions,
  };
}

/** Drains or undrains a running server; the state after it, or why not. */
export async function handleServerCommand(
  context: CommandContext,
  id: string,
  command: ServerCommand,
  metadata: EventMetadata,
): Promise<ServerState | Rejection> {
  const handled = await handleCommand<'server'>(
    context,
    { kind: 'server', id },
    (server) => {
      const isThere = server !== null && server.status !== 'left' && server.status !== 'lost';
      if (isThere) return decideServer(command, server);
      const context = { server_id: id, status: server?.status ?? null };
      return reject('NOT_FOUND', context, { message: 'There is no such running server.' });
    },
    metadata,
  );
  return isRejection(handled) ? handled : handled.state;
}

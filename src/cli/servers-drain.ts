import type { ServerState } from '#events/server.ts';
import { isRejected, reject, type Rejected } from '../errors.ts';
import { decideServer, type ServerCommand } from '../domain/fleet/server.ts';
import { handle, type Desk } from '../commands/handle-command.ts';
import type { Command } from './command.ts';
import { asId } from './arguments.ts';
import { operatorCause } from './operator.ts';

export const drainServer: Command = {
  name: 'servers drain',
  summary: 'Let a server take no new sessions; those that it runs end as they would',
  operands: ['SERVER-ID'],
  options: {},
  read: (given) => say(given.operand(0, asId), { type: 'Drain' }),
};

export const undrainServer: Command = {
  name: 'servers undrain',
  summary: 'Let a server that drains take sessions again',
  operands: ['SERVER-ID'],
  options: {},
  read: (given) => say(given.operand(0, asId), { type: 'Undrain' }),
};

function say(id: string, command: ServerCommand): ReturnType<Command['read']> {
  return async ({ desk }) => {
    const state = await tell(desk, id, command);
    if (isRejected(state)) return state;
    return {
      json: { server_id: id, status: state.status },
      text: `server ${id} is ${state.status}`,
    };
  };
}

async function tell(
  desk: Desk,
  id: string,
  command: ServerCommand,
): Promise<ServerState | Rejected> {
  const handled = await handle<'server'>(
    desk,
    { kind: 'server', id },
    (server) => {
      const isThere = server !== null && server.status !== 'left' && server.status !== 'lost';
      if (isThere) return decideServer(command, server);
      const context = { server_id: id, status: server?.status ?? null };
      return reject('NOT_FOUND', context, { message: 'There is no such server now.' });
    },
    operatorCause(),
  );
  return isRejected(handled) ? handled : handled.state;
}

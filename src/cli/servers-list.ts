import { isOf } from '#events/events.ts';
import type { ServerState } from '#events/server.ts';
import { filters } from '#events/subjects.ts';
import type { EventLog } from '../event-store/event-store.ts';
import { load } from '../event-store/load-state.ts';
import type { Command, CommandSession } from './command.ts';
import { layOut } from './output.ts';
import { readEvents } from './read-events.ts';

export const listServers: Command = {
  name: 'servers list',
  summary: 'List the machines that run browsers, or did',
  options: { all: { meaning: 'those that left or were lost, too' } },
  read(given) {
    const isAll = given.has('all');
    return async ({ desk, warn }) => {
      const known = await readServers(desk.log, warn);
      const shown = known.filter(({ status }) => isAll || (status !== 'left' && status !== 'lost'));
      const json = shown.map(present);
      const heads = ['SERVER', 'STATUS', 'IP', 'MAX', 'TO WAIT', 'LIMITED BY', 'LEAKS'];
      const rows = shown.map(({ id, status, ip, poolMax, pool, leaks }) => {
        const amiss = leaks === undefined ? '–' : String(leaks.browsers + leaks.sessions);
        const target = pool === undefined ? '–' : String(pool.target);
        return [id, status, ip, String(poolMax), target, pool?.limitedBy ?? '–', amiss];
      });
      return { json, text: layOut(heads, rows).join('\n') };
    };
  },
};

/**
 * Each server as its last event left it; found by the events that begin and end a server's life.
 */
async function readServers(log: EventLog, warn: CommandSession['warn']): Promise<ServerState[]> {
  const ids = new Set<string>();
  for await (const event of readEvents(log, filters.serverLives, warn))
    if (isOf('server', event)) ids.add(event.aggregate.id);
  const states: ServerState[] = [];
  for (const id of ids) {
    const { state } = await load<'server'>(log, { kind: 'server', id }, { fromLeader: true });
    if (state !== null) states.push(state);
  }
  return states;
}

function present({ id, status, ip, poolMax, pool, leaks }: ServerState) {
  return {
    server_id: id,
    status,
    ip,
    pool_max: poolMax,
    pool_target: pool?.target ?? null,
    limited_by: pool?.limitedBy ?? null,
    leaked_browsers: leaks?.browsers ?? null,
    leaked_sessions: leaks?.sessions ?? null,
  };
}

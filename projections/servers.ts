import { isOf } from '#events/events.ts';
import type { ServerState } from '#events/server.ts';
import { filters } from '#events/subjects.ts';
import type { Projection } from './projection.ts';

/** The machines that run browsers, or did. */
export const servers: Projection<ServerState> = {
  name: 'servers',
  version: 2,
  subjects: filters.servers,
  readsView: false,
  key(event) {
    return isOf('server', event) ? event.aggregate.id : null;
  },
  aggregateOf: (id) => ({ kind: 'server', id }),
  evolve(view, event) {
    return isOf('server', event) ? event.state : view;
  },
  /** In the order of their last change. */
  lists(view, event) {
    const names: string[] = [];
    if (view.status === 'live') names.push(liveServers);
    if (view.status !== 'left' && view.status !== 'lost') names.push(currentServers);
    return { names, order: event.sequence };
  },
};

/** Those that take sessions. */
export const liveServers = 'live';
/** Those that are there: live ones, and draining and drained ones until they have left. */
export const currentServers = 'current';

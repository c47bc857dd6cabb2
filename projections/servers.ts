import { isOf } from '#events/events.ts';
import type { ServerState } from '#events/server.ts';
import { filters } from '#events/subjects.ts';
import type { Projection } from './projection.ts';

/** The servers that run browsers, including servers that left or were lost. */
export const servers: Projection<ServerState> = {
  name: 'servers',
  version: 2,
  subjects: filters.servers,
  key(event) {
    return isOf('server', event) ? event.aggregate.id : null;
  },
  aggregateOf: (id) => ({ kind: 'server', id }),
  view(event) {
    return isOf('server', event) ? event.state : null;
  },
  /** In the order of their last event. */
  lists(view, event) {
    const names: string[] = [];
    if (view.status === 'live') names.push(liveServers);
    if (view.status !== 'left' && view.status !== 'lost') names.push(currentServers);
    return { names, order: event.sequence };
  },
};

/** Servers that accept sessions. */
export const liveServers = 'live';
/** Live, draining and drained servers: all that have not left. */
export const currentServers = 'current';

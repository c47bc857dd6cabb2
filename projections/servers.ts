import { isOf } from '#events/events.ts';
import type { ServerState } from '#events/server.ts';
import { filters } from '#events/subjects.ts';
import type { StateProjection } from './projection.ts';

/** The servers that run browsers, including servers that left or were lost. */
export const servers: StateProjection<ServerState> = {
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

import type { SessionState } from '#events/session.ts';

/** The browsers that were assigned to a session, and their servers, oldest first. */
export type Fleet = { workloadIds: string[]; serverIds: string[] };

/** The browsers and servers that these states of a session name. */
export function fleetIn(states: readonly SessionState[]): Fleet {
  const places = states.flatMap(({ workload, assignment }) =>
    [workload ?? [], assignment ?? []].flat(),
  );
  return {
    workloadIds: [...new Set(places.map(({ workloadId }) => workloadId))],
    serverIds: [...new Set(places.map(({ serverId }) => serverId))],
  };
}

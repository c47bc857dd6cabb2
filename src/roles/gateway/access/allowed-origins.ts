import { keptBriefly } from '#src/kernel/async/kept-briefly.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';

/** Port: the origins of pages that may embed the screens of an organization's shares. */
export type AllowedOrigins = (organizationId: string) => Promise<readonly string[]>;

/** An organization's origins are read once in this time, however often its shares are opened. */
const KEPT_MS = 1_000;

/** Reads them from the leader of the event store. */
export function createAllowedOrigins(eventStore: EventStore): AllowedOrigins {
  const kept = keptBriefly<readonly string[]>(KEPT_MS);
  return (organizationId) =>
    kept(organizationId, async () => {
      const organization = { kind: 'organization', organizationId } as const;
      const fresh = { fromLeader: true };
      const { state } = await loadState<'organization'>(eventStore, organization, fresh);
      return state?.allowedOrigins ?? [];
    });
}

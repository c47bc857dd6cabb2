import { isFinal } from '#src/kernel/domain/session/session.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import type { RetentionRule } from './sweep-objects.ts';

type Context = { eventStore: EventStore; now: () => number };

/**
 * What is stored of a session is kept for so long after its end; of a session that the event store
 * does not know (any more), as long after the newest object.
 */
export function sessionRetention(
  kind: string,
  { eventStore, now }: Context,
  retainMs: number,
): RetentionRule {
  return {
    kind,
    async judge({ organizationId, id, newestAt }) {
      const session = { kind: 'session', organizationId, id } as const;
      const { state } = await loadState<'session'>(eventStore, session);
      if (state !== null && !isFinal(state.status)) return 'keep';
      const endedAt = state?.endedAt == null ? newestAt : Date.parse(state.endedAt);
      return now() >= endedAt + retainMs ? 'expired' : 'keep';
    },
  };
}

import { isFinal } from '#src/kernel/domain/session/session.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import type { RetentionRule } from './sweep-objects.ts';

type Context = { eventStore: EventStore; now: () => number };

/**
 * Recordings are kept for a while after the end of their sessions; those of sessions that the event
 * store does not know, after their last segment.
 */
export function recordingRetention(context: Context, retainMs: number): RetentionRule {
  return sessionRetention('recordings', context, retainMs);
}

/** The same for what sessions showed last. */
export function thumbnailRetention(context: Context, retainMs: number): RetentionRule {
  return sessionRetention('thumbnails', context, retainMs);
}

function sessionRetention(
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

import type { EventStore } from '#src/event-store/event-store.ts';
import { loadState } from '#src/event-store/load-state.ts';
import type { RetentionRule } from './sweep-objects.ts';

/**
 * How long the zip of an extension stays that its organization does not have: a session that named
 * it may wait for its browser, and an upload stores it before the organization has it.
 */
const KEPT_MS = 3_600_000;

/** Extensions are kept as long as their organization has them. */
export function extensionRetention(
  eventStore: EventStore,
  now: () => number = Date.now,
): RetentionRule {
  return {
    kind: 'extensions',
    async isOver({ organizationId, id, newestAt }) {
      if (now() - newestAt < KEPT_MS) return false;
      const organization = { kind: 'organization', organizationId } as const;
      const fresh = { fromLeader: true };
      const { state } = await loadState<'organization'>(eventStore, organization, fresh);
      return !(state?.extensions ?? []).some(({ extensionId }) => extensionId === id);
    },
  };
}

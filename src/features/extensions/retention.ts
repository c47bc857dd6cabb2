import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import type { RetentionRule } from '#src/kernel/objects/sweep/sweep-objects.ts';

/**
 * A session that named an extension may wait for its browser while the extension is removed. An
 * upload's zip is stored before its organization has it.
 */
const KEPT_MS = 3_600_000;
const REMOVALS = { types: new Set(['organization.extension-removed']) };

/**
 * Extensions are kept as long as their organization has them, and an hour longer. The same zip may
 * be uploaded again: one that was stored after its removal is `unknown`, as is one that the
 * organization never had. An upload that is refused removes what it stored, so that both are rare;
 * but an event store that was restored from an older backup does not know of the later upload.
 */
export function extensionRetention(
  eventStore: EventStore,
  now: () => number = Date.now,
): RetentionRule {
  return {
    kind: 'extensions',
    async judge({ organizationId, id, newestAt }) {
      if (now() - newestAt < KEPT_MS) return 'keep';
      const organization = { kind: 'organization', organizationId } as const;
      const fresh = { fromLeader: true };
      const { state } = await loadState<'organization'>(eventStore, organization, fresh);
      if (state?.extensions?.some(({ extensionId }) => extensionId === id)) return 'keep';
      let removedAt = -Infinity;
      for await (const { data, time } of eventStore.history<'organization'>(organization, REMOVALS))
        if ('extensionId' in data && data.extensionId === id) removedAt = Date.parse(time);
      if (removedAt < newestAt) return 'unknown';
      return now() - removedAt < KEPT_MS ? 'keep' : 'expired';
    },
  };
}

import type { EventStore } from '#src/event-store/event-store.ts';
import { loadState } from '#src/event-store/load-state.ts';
import type { RetentionRule } from './sweep-objects.ts';

/**
 * How long the archive of a profile stays that is no version of it: a session stores it before it
 * is recorded, and a browser that is being launched may still read one that is kept no more.
 */
const KEPT_MS = 3_600_000;

/** Archives of profiles are kept as long as their profile has them as a version. */
export function profileRetention(
  eventStore: EventStore,
  now: () => number = Date.now,
): RetentionRule {
  return {
    kind: 'profiles',
    judgesEach: true,
    async isOver({ organizationId, id, name, newestAt }) {
      if (now() - newestAt < KEPT_MS) return false;
      const profile = { kind: 'profile', organizationId, id } as const;
      const { state } = await loadState<'profile'>(eventStore, profile, { fromLeader: true });
      return !(state?.versions ?? []).some(({ sha256 }) => sha256 === name);
    },
  };
}

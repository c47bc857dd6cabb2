import type { ProfileState } from '#events/profile.ts';
import type { RefOf } from '#events/events.ts';
import type { EventStore } from '#src/event-store/event-store.ts';
import { evolve, loadState } from '#src/event-store/load-state.ts';
import type { RetentionRule } from './sweep-objects.ts';

/** A browser that is being launched may still read an archive that is kept no more. */
const KEPT_MS = 3_600_000;

/**
 * Archives are kept as long as their profile has them as a version, and a replaced version for
 * `replacedKeptMs` after it was replaced. An archive that the profile never had is `unknown`: who
 * stores one and cannot record it removes it, so that it is rare.
 */
export function profileRetention(
  eventStore: EventStore,
  { replacedKeptMs, now }: { replacedKeptMs: number; now: () => number },
): RetentionRule {
  return {
    kind: 'profiles',
    judgesEach: true,
    keepsUntilRemoved: true,
    async judge({ organizationId, id, name = '', newestAt }) {
      if (now() - newestAt < KEPT_MS) return 'keep';
      const profile = { kind: 'profile', organizationId, id } as const;
      const { state } = await loadState<'profile'>(eventStore, profile, { fromLeader: true });
      if (state === null) return 'unknown';
      if (state.removedAt !== null) return 'remove';
      if (hasArchive(state, name)) return 'keep';
      const replacedAt = await findReplacement(eventStore, profile, name);
      if (replacedAt === null) return 'unknown';
      return now() - replacedAt < Math.max(KEPT_MS, replacedKeptMs) ? 'keep' : 'remove';
    },
  };
}

function hasArchive(profile: ProfileState | null, sha256: string): boolean {
  return profile?.versions.some((version) => version.sha256 === sha256) === true;
}

/** When the profile lost the version, in milliseconds since 1970; null: it never had it. */
async function findReplacement(
  eventStore: EventStore,
  profile: RefOf<'profile'>,
  sha256: string,
): Promise<number | null> {
  let state: ProfileState | null = null;
  let replacedAt: number | null = null;
  for await (const { type, data, time } of eventStore.history(profile)) {
    const before = state;
    state = evolve<'profile'>(profile, state, { type, data } as never);
    if (hasArchive(before, sha256) && !hasArchive(state, sha256)) replacedAt = Date.parse(time);
  }
  return replacedAt;
}

import type { ProfileState } from '#events/profile.ts';
import type { RefOf } from '#events/events.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { evolve, loadState } from '#src/kernel/event-store/load-state.ts';
import type { RetentionRule } from '#src/kernel/objects/sweep/sweep-objects.ts';

/** A session that waits for its browser may still read an archive that is kept no more. */
const KEPT_MS = 3_600_000;

/**
 * Archives are kept as long as their profile has them as a version, and a replaced version for
 * `replacedKeptMs` after it was replaced, an hour at least. Those of a removed profile are kept for
 * an hour. An archive that the profile never had is `unknown`: who stores one and cannot record it
 * removes it, so that it is rare.
 */
export function profileRetention(
  eventStore: EventStore,
  { replacedKeptMs, now }: { replacedKeptMs: number; now: () => number },
): RetentionRule {
  const keptMs = Math.max(KEPT_MS, replacedKeptMs);
  /** Of the profile that was judged last: the archives of one come one after the other. */
  let last: { profile: string; sequence: number; replaced: ReadonlyMap<string, number> } | null =
    null;

  async function replacementsOf(profile: RefOf<'profile'>, sequence: number) {
    const name = `${profile.organizationId}/${profile.id}`;
    if (last?.profile !== name || last.sequence !== sequence)
      last = { profile: name, sequence, replaced: await readReplacements(eventStore, profile) };
    return last.replaced;
  }
  return {
    kind: 'profiles',
    judgesEach: true,
    async judge({ organizationId, id, name = '', newestAt }) {
      if (now() - newestAt < KEPT_MS) return 'keep';
      const profile = { kind: 'profile', organizationId, id } as const;
      const fresh = { fromLeader: true };
      const { state, sequence } = await loadState<'profile'>(eventStore, profile, fresh);
      if (state === null) return 'unknown';
      if (state.removedAt !== null)
        return now() - Date.parse(state.removedAt) < KEPT_MS ? 'keep' : 'removed';
      if (state.versions.some(({ sha256 }) => sha256 === name)) return 'keep';
      // It was replaced after it was stored, so that no history has to be read yet.
      if (now() - newestAt < keptMs) return 'keep';
      const replacedAt = (await replacementsOf(profile, sequence)).get(name);
      if (replacedAt === undefined) return 'unknown';
      return now() - replacedAt < keptMs ? 'keep' : 'expired';
    },
  };
}

/** When the profile lost each version that it has no more, in milliseconds since 1970. */
async function readReplacements(
  eventStore: EventStore,
  profile: RefOf<'profile'>,
): Promise<ReadonlyMap<string, number>> {
  const replaced = new Map<string, number>();
  let state: ProfileState | null = null;
  for await (const { type, data, time } of eventStore.history(profile)) {
    const before: ProfileState | null = state;
    state = evolve<'profile'>(profile, state, { type, data } as never);
    const kept = new Set(state.versions.map(({ sha256 }) => sha256));
    for (const { sha256 } of before?.versions ?? [])
      if (!kept.has(sha256)) replaced.set(sha256, Date.parse(time));
  }
  return replaced;
}

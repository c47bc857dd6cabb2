import { createFairSlots, type FairSlots } from '#src/kernel/async/fair-slots.ts';
import { findVersion } from '#src/kernel/domain/profile/profile.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { ArchiveDamaged } from '#src/features/profiles/read-exactly.ts';
import type {
  LoadedArchive,
  ProfileOwner,
  ProfileVault,
} from '#src/features/profiles/profile-vault.ts';
import {
  LaunchFailed,
  type Browsers,
  type BrowserSpec,
  type RunningBrowser,
} from '#src/browsers/browsers.ts';
import type { ProfileOfSession } from '#src/roles/provisioner/profiles.ts';
import { restoreLiveState } from './live-state.ts';

/** Profiles on this server: browsers begin with them, and leave them when they are closed. */
export type ServerProfiles = {
  vault: ProfileVault;
  /**
   * Reads a browser's profile and stores it, once fewer than four of the server do so, and fewer
   * than three of the organization.
   * @returns null: it was not its turn within the time, and nothing was done
   */
  inTurn<Stored>(
    organizationId: string,
    withinMs: number,
    save: () => Promise<Stored>,
  ): Promise<Stored | null>;
  /** How many versions of a profile are kept. */
  versionsKept: number;
  /**
   * Launches a browser for a session with a profile.
   * @throws LaunchFailed also where the profile's version cannot be read
   */
  launch(
    browsers: Pick<Browsers, 'launch' | 'stop'>,
    spec: BrowserSpec,
    profile: ProfileOfSession,
  ): Promise<RunningBrowser>;
};

/** Saves at once: each compresses and encrypts, which takes a core. */
const SLOTS = { slots: 4, slotsPerOwner: 3 };
/** Waiting for a slot and storing, as long as a save may take. */
const SEAL_MS = 120_000;

export type ProfilesParts = {
  eventStore: EventStore;
  vault: ProfileVault;
  versionsKept: number;
  /** A version could not be sealed again; the next launch with it tries again. */
  onNotSealed: (error: unknown, owner: ProfileOwner) => void;
};

export function createProfiles(given: ProfilesParts): ServerProfiles {
  const { eventStore, vault, versionsKept } = given;
  const slots = createFairSlots(SLOTS);

  async function read({ organizationId, profileId: id }: ProfileOwner) {
    const aggregate = { kind: 'profile', organizationId, id } as const;
    return (await loadState<'profile'>(eventStore, aggregate, { fromLeader: true })).state;
  }
  async function open(
    profile: ProfileOfSession,
  ): Promise<(LoadedArchive & { sealAgain(): Promise<void> }) | null> {
    const { organizationId, id: profileId, version: number } = profile;
    if (number === 0) return null;
    const state = await read({ organizationId, profileId });
    const version = state === null ? undefined : findVersion(state, number);
    if (version === undefined) throw new ArchiveDamaged('it is kept no more');
    const owner = { organizationId, profileId };
    const archive = await vault.load(owner, version.sha256);
    return { ...archive, sealAgain: () => sealAgain(given, slots, owner, version.sha256) };
  }

  return {
    vault,
    async inTurn(organizationId, withinMs, save) {
      const tooLate = AbortSignal.timeout(withinMs);
      using slot = await slots.acquire(organizationId, tooLate);
      return slot === null || tooLate.aborted ? null : await save();
    },
    versionsKept,
    async launch(browsers, spec, profile) {
      let damage: Error | null = null;
      // Begun now, so that it is read while the browser's other programs start.
      const opening = open(profile);
      opening.catch((error: Error) => (damage = error));
      async function* tar(): AsyncGenerator<Uint8Array> {
        try {
          const archive = await opening;
          if (archive !== null) yield* archive.tar;
        } catch (error) {
          damage = error as Error;
          throw error;
        }
      }
      const isKept = profile.save;
      const own = { tar: profile.version === 0 ? null : tar(), isKept };
      try {
        const browser = await browsers.launch({ ...spec, profile: own });
        const archive = await opening;
        const live = archive?.live ?? null;
        if (live !== null) await restoreLiveState(browser, live);
        // The browser has read it all; the session need not wait.
        if (archive?.isOfOlderKey === true) void archive.sealAgain();
        return browser;
      } catch (error) {
        if (!(error instanceof LaunchFailed)) await browsers.stop(spec.workloadId);
        if (damage === null) throw error;
        const which = `version ${profile.version} of profile ${profile.id}`;
        throw new LaunchFailed(`${which} cannot be read: ${(damage as Error).message}`, '');
      }
    },
  };
}

/** After a change of the master key each version is sealed with the new one at its next use. */
async function sealAgain(
  { vault, onNotSealed }: ProfilesParts,
  slots: FairSlots,
  owner: ProfileOwner,
  sha256: string,
): Promise<void> {
  const signal = AbortSignal.timeout(SEAL_MS);
  try {
    using slot = await slots.acquire(owner.organizationId, signal);
    if (slot !== null) await vault.sealAgain(owner, sha256, signal);
  } catch (error) {
    onNotSealed(error, owner);
  }
}

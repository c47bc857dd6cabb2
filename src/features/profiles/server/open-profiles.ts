import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { OpenProfiles } from '#src/roles/provisioner/profiles.ts';
import type { ProfileVault } from '../profile-vault.ts';
import { createProfiles } from './profiles.ts';
import { saveAtEnd, saveNow, type SaveParts } from './save-profile.ts';

/** The profiles of a server whose archives are in the vault. */
export function openProfiles(given: {
  eventStore: EventStore;
  vault: ProfileVault;
  /** Versions of each profile. */
  versionsKept: number;
  log: Pick<Logger, 'warn' | 'error'>;
}): OpenProfiles {
  const { eventStore, vault, versionsKept, log } = given;
  return ({ browsers, reporter }) => {
    const profiles = createProfiles({
      eventStore,
      vault,
      versionsKept,
      onNotSealed: (error, owner) =>
        log.warn({ err: error, ...owner }, 'failed to seal a profile with the current master key'),
    });
    const parts: SaveParts = { browsers, profiles, reporter, log };
    return {
      launch: (spec, profile) => profiles.launch(browsers, spec, profile),
      saveAtEnd: (browser, how, metadata) => saveAtEnd(parts, browser, how, metadata),
      saveNow: (browser, metadata) => saveNow(parts, browser, metadata),
    };
  };
}

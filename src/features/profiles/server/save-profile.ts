import type { EventMetadata } from '#events/envelope.ts';
import type { NotSavedReason } from '#events/profile.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { isRejection, Unavailable } from '#src/kernel/errors.ts';
import { ProfileTooLarge, type Archive } from '#src/features/profiles/packed.ts';
import type { StoredArchive } from '#src/features/profiles/profile-vault.ts';
import type { Reporter } from '#src/commands/reporter.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Browsers } from '#src/browsers/browsers.ts';
import { readLiveState } from './live-state.ts';
import type { ProfileOfSession, SavedBrowser } from '#src/roles/provisioner/profiles.ts';
import type { ServerProfiles } from './profiles.ts';

/** What a save needs of the server. */
export type SaveParts = {
  browsers: Pick<Browsers, 'build' | 'close' | 'readProfile'>;
  profiles: Pick<ServerProfiles, 'inTurn' | 'vault' | 'versionsKept'>;
  reporter: Pick<Reporter, 'profile' | 'session'>;
  log: Pick<Logger, 'warn' | 'error'>;
};
/** How long a browser may take to write what it has in memory, and end. */
const CLOSE_MS = 20_000;
/** Chromium writes the script of a new service worker up to some 100 ms after it runs. */
const SETTLE_MS = 1_000;
/** How long a browser that goes on may stand still. */
const FROZEN_MS = 10_000;
/** How long its profile may take to be read and stored. */
const STORE_MS = 60_000;
/** How long the end of a session waits at most while others of the server are saved. */
const TURN_AT_END_MS = 60_000;
/** A save on request is given up 90 s after it was asked for (`decide-profile.ts`). */
const TURN_ON_REQUEST_MS = 10_000;

/** A profile that was not saved. */
class NotSaved extends Error {
  override readonly name = 'NotSaved';
  readonly reason: NotSavedReason;
  constructor(reason: NotSavedReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}

/** See `Profiles`. Nothing else touches the browser meanwhile; afterwards it can be removed. */
export async function saveAtEnd(
  parts: SaveParts,
  pooled: SavedBrowser,
  { isClosed }: { isClosed: boolean },
  metadata: EventMetadata,
): Promise<void> {
  await pooled.saving;
  await reportFailure(parts, pooled, true, metadata, async (profile) => {
    const { workloadId } = pooled;
    if (!isClosed && !(await parts.browsers.close(workloadId, CLOSE_MS)))
      throw new NotSaved('not_closed', `the browser was not closed within ${CLOSE_MS / 1000} s`);
    const stored = await storeInTurn(parts, profile, TURN_AT_END_MS, async () => ({
      live: null,
      tar: parts.browsers.readProfile(workloadId, AbortSignal.timeout(STORE_MS)),
    }));
    await record(parts, profile, stored, true, metadata);
  });
}

/**
 * Saves the profile of a session that goes on, because a client has asked for it: what the
 * browser has in memory, and a copy of its folder, which is taken while the browser stands still.
 * Never rejects.
 */
export async function saveNow(
  parts: SaveParts,
  pooled: SavedBrowser,
  metadata: EventMetadata,
): Promise<void> {
  const { browser, workloadId } = pooled;
  if (browser === null) return;
  await reportFailure(parts, pooled, false, metadata, async (profile) => {
    await sleep(SETTLE_MS);
    const stored = await storeInTurn(parts, profile, TURN_ON_REQUEST_MS, async () => ({
      live: await readLiveState(browser),
      tar: parts.browsers.readProfile(workloadId, AbortSignal.timeout(FROZEN_MS)),
    }));
    await record(parts, profile, stored, false, metadata);
  });
}

/** Where the session is to save its profile; what keeps it from that is reported. Never rejects. */
async function reportFailure(
  parts: SaveParts,
  { session, workloadId, options: { profile } }: SavedBrowser,
  atEnd: boolean,
  metadata: EventMetadata,
  save: (profile: ProfileOfSession) => Promise<void>,
): Promise<void> {
  if (session === null || profile?.save !== true) return;
  try {
    await save(profile);
  } catch (error) {
    parts.log.warn({ err: error, session, workloadId }, 'failed to save a profile');
    const outcome = { reason: reasonOf(error), detail: messageOf(error) };
    const command = { type: 'ReportProfile', outcome, atEnd } as const;
    await parts.reporter
      .session(session, command, metadata)
      .catch((failure: unknown) =>
        parts.log.error({ err: failure, session }, 'failed to report on a profile'),
      );
  }
}

/**
 * Stores what is left of a browser. Its turn ends with that: a record waits for an event store that
 * is away, and other profiles can be stored meanwhile.
 * @throws NotSaved where others take too long; whatever the archive or the object store throws
 */
async function storeInTurn(
  parts: SaveParts,
  { organizationId, id: profileId }: ProfileOfSession,
  turnWithinMs: number,
  read: () => Promise<Archive>,
): Promise<StoredArchive> {
  const { profiles } = parts;
  const stored = await profiles.inTurn(organizationId, turnWithinMs, async () =>
    profiles.vault.save({ organizationId, profileId }, await read(), AbortSignal.timeout(STORE_MS)),
  );
  if (stored === null)
    throw new NotSaved('storage', `others were being saved for ${turnWithinMs / 1000} s`);
  return stored;
}

/**
 * Records an archive that is stored: a crash before leaves an object that nothing refers to,
 * and the last version unchanged.
 * @throws NotSaved where the session may not save it; whatever the event store throws
 */
async function record(
  parts: SaveParts,
  profile: ProfileOfSession,
  { sha256, bytes, contents }: StoredArchive,
  atEnd: boolean,
  metadata: EventMetadata,
): Promise<void> {
  const { vault, versionsKept: kept } = parts.profiles;
  const { organizationId, sessionId, id: profileId } = profile;
  const owner = { organizationId, profileId };
  const browser = parts.browsers.build().version;
  const saved = { profileId, archive: { sha256, bytes, browser, contents }, kept, atEnd };
  const recorded = await parts.reporter.profile({ organizationId, id: sessionId }, saved, metadata);
  if (!isRejection(recorded)) return;
  await vault
    .remove(owner, sha256)
    .catch((error: unknown) =>
      parts.log.warn({ err: error, ...owner }, 'failed to remove an archive of a profile'),
    );
  throw new NotSaved('not_writer', `it may not be saved: ${recorded.code}`);
}

function reasonOf(error: unknown): NotSavedReason {
  if (error instanceof NotSaved) return error.reason;
  return error instanceof ProfileTooLarge ? 'too_large' : 'storage';
}

/** For people; of other failures the log has more. */
function messageOf(error: unknown): string {
  if (error instanceof NotSaved || error instanceof ProfileTooLarge) return error.message;
  return error instanceof Unavailable ? error.message : 'it could not be read or stored';
}

import type { EventMetadata } from '#events/envelope.ts';
import type { NotSavedReason } from '#events/profile.ts';
import { sleep } from '#src/async/sleep.ts';
import { isRejection, Unavailable } from '#src/errors.ts';
import { ProfileTooLarge, type Archive } from '#src/profiles/packed.ts';
import type { ProfileOfSession } from '../pool/options.ts';
import type { Pool } from '../pool/pool.ts';
import type { PooledBrowser } from '../pool/roster.ts';
import { readLiveState } from './live-state.ts';

/** How long a browser may take to write what it has in memory, and end. */
const CLOSE_MS = 20_000;
/** Chromium writes the script of a new service worker up to some 100 ms after it runs. */
const SETTLE_MS = 1_000;
/** How long a browser that goes on may stand still. */
const FROZEN_MS = 10_000;
/** How long its profile may take to be read and stored. */
const STORE_MS = 60_000;
/** How long it waits at most while others of the server are saved. */
const TURN_MS = 60_000;

/** A profile that was not saved. */
class NotSaved extends Error {
  override readonly name = 'NotSaved';
  readonly reason: NotSavedReason;
  constructor(reason: NotSavedReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}

/**
 * Saves the profile of a session that ends, if it was asked to: closes the browser, stores what it
 * has left, and records that. Nothing else touches the browser meanwhile; afterwards it can be
 * removed. A profile that cannot be saved is reported as such, and the session ends all the same.
 * Never rejects.
 * @param isClosed whether its user has closed the browser
 */
export async function saveAtEnd(
  pool: Pool,
  pooled: PooledBrowser,
  { isClosed }: { isClosed: boolean },
  metadata: EventMetadata,
): Promise<void> {
  await pooled.saving;
  await reportFailure(pool, pooled, true, metadata, async (profile) => {
    const { workloadId } = pooled;
    if (!isClosed && !(await pool.browsers.close(workloadId, CLOSE_MS)))
      throw new NotSaved('not_closed', `the browser was not closed within ${CLOSE_MS / 1000} s`);
    using _ = await turn(pool, profile);
    const tar = pool.browsers.readProfile(workloadId, AbortSignal.timeout(STORE_MS));
    await store(pool, profile, { live: null, tar }, true, metadata);
  });
}

/**
 * Saves the profile of a session that goes on, because a client has asked for it: what the
 * browser has in memory, and a copy of its folder, which is taken while the browser stands still.
 * Never rejects.
 */
export async function saveNow(
  pool: Pool,
  pooled: PooledBrowser,
  metadata: EventMetadata,
): Promise<void> {
  const { browser, workloadId } = pooled;
  if (browser === null) return;
  await reportFailure(pool, pooled, false, metadata, async (profile) => {
    await sleep(SETTLE_MS);
    using _ = await turn(pool, profile);
    const live = await readLiveState(browser);
    const tar = pool.browsers.readProfile(workloadId, AbortSignal.timeout(FROZEN_MS));
    await store(pool, profile, { live, tar }, false, metadata);
  });
}

/** @throws NotSaved where others of the server take too long */
async function turn(pool: Pool, { organizationId }: ProfileOfSession): Promise<Disposable> {
  const tooLate = AbortSignal.timeout(TURN_MS);
  const slot = await pool.profiles.slots.acquire(organizationId, tooLate);
  if (slot !== null && !tooLate.aborted) return slot;
  slot?.[Symbol.dispose]();
  throw new NotSaved('storage', `others were being saved for ${TURN_MS / 1000} s`);
}

/** Where the session is to save its profile; what keeps it from that is reported. Never rejects. */
async function reportFailure(
  pool: Pool,
  { session, workloadId, options: { profile } }: PooledBrowser,
  atEnd: boolean,
  metadata: EventMetadata,
  save: (profile: ProfileOfSession) => Promise<void>,
): Promise<void> {
  if (session === null || profile?.save !== true) return;
  try {
    await save(profile);
  } catch (error) {
    pool.log.warn({ err: error, session, workloadId }, 'failed to save a profile');
    const outcome = { reason: reasonOf(error), detail: messageOf(error) };
    const command = { type: 'ReportProfile', outcome, atEnd } as const;
    await pool.reporter
      .session(session, command, metadata)
      .catch((failure: unknown) =>
        pool.log.error({ err: failure, session }, 'failed to report on a profile'),
      );
  }
}

/**
 * Stores an archive and then records it: a crash in between leaves an object that the next save
 * removes, and the last version unchanged.
 * @throws NotSaved; whatever the archive or the object store throws
 */
async function store(
  pool: Pool,
  profile: ProfileOfSession,
  archive: Archive,
  atEnd: boolean,
  metadata: EventMetadata,
): Promise<void> {
  const { vault, versionsKept: kept } = pool.profiles;
  const { organizationId, sessionId, id: profileId } = profile;
  const owner = { organizationId, profileId };
  const { sha256, bytes, contents } = await vault.save(
    owner,
    archive,
    AbortSignal.timeout(STORE_MS),
  );
  const browser = pool.browsers.build().version;
  const saved = { profileId, archive: { sha256, bytes, browser, contents }, kept, atEnd };
  const recorded = await pool.reporter.profile({ organizationId, id: sessionId }, saved, metadata);
  const isRefused = isRejection(recorded);
  const removing = isRefused ? vault.remove(owner, sha256) : pool.profiles.removeOld(owner);
  await removing.catch((error: unknown) =>
    pool.log.warn({ err: error, ...owner }, 'failed to remove an archive of a profile'),
  );
  if (isRefused) throw new NotSaved('not_writer', `it may not be saved: ${recorded.code}`);
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

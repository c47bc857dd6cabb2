import type { EventMetadata } from '#events/envelope.ts';
import type { AskedProfile } from '#events/profile.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { hasEnded } from '#src/kernel/domain/session/rejections.ts';
import { decide } from '#src/kernel/domain/session/decide.ts';
import {
  decideProfile,
  type ProfileCommand,
  type SavedArchive,
} from '#src/kernel/domain/profile/profile.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import { isFinal, type SessionIdentity } from '#src/kernel/domain/session/session.ts';
import {
  handleTransaction,
  type CommandContext,
  type CommandResult,
  type Reads,
} from './handle-command.ts';
import type { Decision } from './to-stream-append.ts';

/** The profile that a session is requested with; `version` null: the newest. */
export type WantedProfile = { id: string; version: number | null; save: boolean };

/** The profile as the session gets it, and what is recorded of it in the same batch. */
type Admitted = { profile: AskedProfile; decisions: Decision[] };

/**
 * Admits a new session to a profile. Nothing has to be released later: a writer counts only as long
 * as its session is open, so however a session ends, the profile is free with it.
 */
export async function admitToProfile(
  reads: Reads,
  { organizationId, id: sessionId }: SessionIdentity,
  { id, version, save }: WantedProfile,
  now: number,
): Promise<Admitted | Rejection> {
  const aggregate = { kind: 'profile', organizationId, id } as const;
  const { state } = await reads.readCurrent<'profile'>(aggregate);
  const writer = save ? (state?.writer ?? null) : null;
  const isWriterOpen = await isOpen(reads, organizationId, writer);
  const command = { type: 'UseProfile', sessionId, version, save, isWriterOpen, now } as const;
  const events = decideProfile(command, state, id);
  if (isRejection(events)) return events;
  const profile = { id, version: version ?? state?.latest ?? 0, save };
  return { profile, decisions: [{ aggregate, events }] };
}

async function isOpen(
  { readCurrent }: Reads,
  organizationId: string,
  sessionId: string | null,
): Promise<boolean> {
  if (sessionId === null) return false;
  const session = { kind: 'session', organizationId, id: sessionId } as const;
  const { state } = await readCurrent<'session'>(session);
  return state !== null && !isFinal(state.status);
}

/**
 * Creates or removes a profile, and counts it in its organization: both or none. It cannot be
 * removed while a session is open that saves it.
 * @param countThem how many the organization has, for one that has not counted them yet
 * @throws Unavailable if the event store does not answer
 */
export async function handleProfileCommand(
  context: CommandContext,
  organizationId: string,
  id: string,
  command:
    | Extract<ProfileCommand, { type: 'CreateProfile' }>
    | { type: 'RemoveProfile'; by: string; now: number },
  metadata: EventMetadata,
  countThem: () => Promise<number>,
): Promise<CommandResult<'profile'> | Rejection> {
  const organization = { kind: 'organization', organizationId } as const;
  const aggregate = { kind: 'profile', organizationId, id } as const;
  return handleTransaction<'profile'>(context, aggregate, metadata, async (reads) => {
    const { state } = await reads.readCurrent<'profile'>(aggregate);
    const isWriterOpen = await isOpen(reads, organizationId, state?.writer ?? null);
    const asked = command.type === 'RemoveProfile' ? { ...command, isWriterOpen } : command;
    const events = decideProfile(asked, state, id);
    if (isRejection(events)) return events;
    const owner = await reads.readCurrent<'organization'>(organization);
    const counted = owner.state?.profiles ?? (await countThem());
    const count =
      command.type === 'RemoveProfile'
        ? ({ type: 'UncountProfile', profileId: id } as const)
        : ({ type: 'CountProfile', profileId: id, counted } as const);
    const counting = decideOrganization(count, owner.state);
    if (isRejection(counting)) return counting;
    return [
      { aggregate, events },
      { aggregate: organization, events: counting },
    ];
  });
}

/** What a session's browser has left to be recorded. */
export type SavedProfile = {
  profileId: string;
  archive: SavedArchive;
  /** How many versions are kept. */
  kept: number;
  /** False: the session goes on. */
  atEnd: boolean;
};

/**
 * Records the version of a profile that a session has saved, in the profile's history and in its
 * own. The session must be open, and the one that was admitted to save: one of a server that was
 * declared lost is not any more, and another may have been admitted.
 * @throws Unavailable if the event store does not answer
 */
export async function recordSavedProfile(
  context: CommandContext,
  { organizationId, id: sessionId }: SessionIdentity,
  { profileId, archive, kept, atEnd }: SavedProfile,
  metadata: EventMetadata,
): Promise<CommandResult<'session'> | Rejection> {
  const session = { kind: 'session', organizationId, id: sessionId } as const;
  const profile = { kind: 'profile', organizationId, id: profileId } as const;
  return handleTransaction<'session'>(context, session, metadata, async ({ readCurrent }) => {
    const [owner, before] = await Promise.all([
      readCurrent<'session'>(session),
      readCurrent<'profile'>(profile),
    ]);
    if (owner.state === null || isFinal(owner.state.status))
      return owner.state === null ? reject('SESSION_NOT_FOUND') : hasEnded(owner.state);
    const save = { type: 'SaveVersion', sessionId, archive, kept, now: context.now() } as const;
    const saved = decideProfile(save, before.state, profileId);
    if (isRejection(saved)) return saved;
    const version = (before.state?.latest ?? 0) + 1;
    const outcome = { version, bytes: archive.bytes };
    const events = decide({ type: 'ReportProfile', outcome, atEnd }, owner.state);
    if (isRejection(events)) return events;
    if (events.length === 0) return reject('SESSION_NOT_ACTIVE', { session_id: sessionId });
    return [
      { aggregate: session, events },
      { aggregate: profile, events: saved },
    ];
  });
}

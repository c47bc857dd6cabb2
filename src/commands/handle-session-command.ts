import type { EventMetadata } from '#events/envelope.ts';
import { isRejection, type Rejection } from '#src/kernel/errors.ts';
import { ledgerCommandFor } from '#src/kernel/domain/organization/ledger.ts';
import type { CreateSession, SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { decide } from '#src/kernel/domain/session/decide.ts';
import type { SessionIdentity } from '#src/kernel/domain/session/session.ts';
import { handleTransaction, type CommandContext, type CommandResult } from './handle-command.ts';
import { admitToProfile, type WantedProfile } from './session-profile.ts';

/**
 * Handles a command of a session. The ledger commands that it requires go into the same batch, so
 * that no crash can leave a counted session that does not exist, or the reverse.
 * @param limits the limits of the organization's tier; only CreateSession needs them
 * @param wanted the profile of the session that is created; null: none
 */
export function handleSessionCommand(
  context: CommandContext,
  identity: SessionIdentity,
  command: SessionCommand,
  metadata: EventMetadata,
  limits: { concurrentSessions: number } = { concurrentSessions: 0 },
  wanted: WantedProfile | null = null,
): Promise<CommandResult<'session'> | Rejection> {
  const { organizationId, id } = identity;
  const session = { kind: 'session', organizationId, id } as const;
  const ledger = { kind: 'ledger', organizationId } as const;
  const isCreate = command.type === 'CreateSession';
  return handleTransaction(context, session, metadata, async (reads) => {
    const { read, readNew, prefetchLedger } = reads;
    // Without an Idempotency-Key the id was generated for this request: the session is new.
    const isNew = isCreate && command.fingerprint === null;
    const [{ state }] = await Promise.all([
      isNew ? readNew<'session'>(session) : read<'session'>(session),
      isCreate ? prefetchLedger(ledger) : null,
    ]);
    // A repeated request was admitted before.
    const admitted =
      wanted === null || state !== null
        ? null
        : await admitToProfile(reads, identity, wanted, context.now());
    if (admitted !== null && isRejection(admitted)) return withId(admitted, id);
    const asked = admitted === null ? command : withProfile(command, admitted.profile);
    const events = decide(asked, state);
    if (isRejection(events)) return withId(events, id);
    const commands = events
      .map((event) => ledgerCommandFor(event, id, limits))
      .filter((one) => one !== null);
    const recorded = [{ aggregate: session, events }, ...(admitted?.decisions ?? [])];
    return commands.length === 0 ? recorded : [...recorded, { aggregate: ledger, commands }];
  });
}

function withProfile(
  command: SessionCommand,
  profile: NonNullable<CreateSession['profile']>,
): SessionCommand {
  return command.type === 'CreateSession' ? { ...command, profile } : command;
}

function withId(rejection: Rejection, id: string): Rejection {
  return { ...rejection, context: { session_id: id, ...rejection.context } };
}

import type { EventMetadata } from '#events/envelope.ts';
import { isRejection, type Rejection } from '#src/errors.ts';
import { ledgerCommandFor } from '#src/domain/organization/ledger.ts';
import type { SessionCommand } from '#src/domain/session/commands.ts';
import { decide } from '#src/domain/session/decide.ts';
import type { SessionIdentity } from '#src/domain/session/session.ts';
import { handleTransaction, type CommandContext, type CommandResult } from './handle-command.ts';

/**
 * Handles a command of a session. The ledger commands that it requires go into the same batch, so
 * that no crash can leave a counted session that does not exist, or the reverse.
 * @param limits the limits of the organization's tier; only CreateSession needs them
 */
export function handleSessionCommand(
  context: CommandContext,
  identity: SessionIdentity,
  command: SessionCommand,
  metadata: EventMetadata,
  limits: { concurrentSessions: number } = { concurrentSessions: 0 },
): Promise<CommandResult<'session'> | Rejection> {
  const { organizationId, id } = identity;
  const session = { kind: 'session', organizationId, id } as const;
  const ledger = { kind: 'ledger', organizationId } as const;
  const isCreate = command.type === 'CreateSession';
  return handleTransaction(
    context,
    session,
    metadata,
    async ({ read, readNew, prefetchLedger }) => {
      // Without an Idempotency-Key the id was generated for this request: the session is new.
      const isNew = isCreate && command.fingerprint === null;
      const [{ state }] = await Promise.all([
        isNew ? readNew<'session'>(session) : read<'session'>(session),
        isCreate ? prefetchLedger(ledger) : null,
      ]);
      const events = decide(command, state);
      if (isRejection(events)) return withId(events, id);
      const commands = events
        .map((event) => ledgerCommandFor(event, id, limits))
        .filter((one) => one !== null);
      const recorded = { aggregate: session, events };
      return commands.length === 0 ? [recorded] : [recorded, { aggregate: ledger, commands }];
    },
  );
}

function withId(rejection: Rejection, id: string): Rejection {
  return { ...rejection, context: { session_id: id, ...rejection.context } };
}

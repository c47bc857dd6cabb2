import type { Cause } from '#events/envelope.ts';
import { isRejected, type Rejected } from '#src/errors.ts';
import { moveFor } from '#src/domain/organization/ledger.ts';
import type { SessionCommand } from '#src/domain/session/commands.ts';
import { decide } from '#src/domain/session/decide.ts';
import type { SessionIdentity } from '#src/domain/session/session.ts';
import { transact, type Desk, type Handled } from './handle-command.ts';

/**
 * A session's command, with the moves of slots and credits it asks for in the same batch: no crash
 * can leave a counted session that does not exist, or the reverse.
 * @param limits what the organization's tier allows; needed for CreateSession alone
 */
export function handleSession(
  desk: Desk,
  identity: SessionIdentity,
  command: SessionCommand,
  cause: Cause,
  limits: { concurrentSessions: number } = { concurrentSessions: 0 },
): Promise<Handled<'session'> | Rejected> {
  const { organizationId, id } = identity;
  const session = { kind: 'session', organizationId, id } as const;
  const ledger = { kind: 'ledger', organizationId } as const;
  const isCreate = command.type === 'CreateSession';
  return transact(desk, session, cause, async ({ read, assumeNew, isFirst }) => {
    // Without an Idempotency-Key the id was made for this request: there is nothing to read.
    if (isFirst && isCreate && command.fingerprint === null) assumeNew(session);
    // A create moves the ledger as a rule: both are read at once, where nobody in line knows it.
    const isInLine = desk.ledgers?.isBusy(organizationId) === true;
    const [{ state }] = await Promise.all([
      read<'session'>(session),
      isCreate && isFirst && !isInLine ? read<'ledger'>(ledger) : null,
    ]);
    const events = decide(command, state);
    if (isRejected(events)) return withId(events, id);
    const moves = events.map((event) => moveFor(event, id, limits)).filter((move) => move !== null);
    const recorded = { aggregate: session, events };
    return moves.length === 0 ? [recorded] : [recorded, { aggregate: ledger, moves }];
  });
}

function withId(rejected: Rejected, id: string): Rejected {
  return { ...rejected, context: { session_id: id, ...rejected.context } };
}

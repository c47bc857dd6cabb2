import { Type, type Static } from 'typebox';
import type { EventOf } from './envelope.ts';
import { EgressTotals } from './egress.ts';
import { CarriedForward, SessionId } from './fields.ts';

const Credits = Type.Integer({ minimum: 0, description: 'one credit is one session-minute' });

/** Changes of an organization's slots and credits; each event but a grant names its session. */
export const ledgerEvents = {
  'ledger.credits-granted': Type.Object({ credits: Credits }),
  'ledger.slot-reserved': Type.Object({ sessionId: SessionId, credits: Credits }),
  'ledger.credits-reserved': Type.Object({ sessionId: SessionId, credits: Credits }),
  'ledger.slot-released': Type.Object({
    sessionId: SessionId,
    creditsUsed: Credits,
    creditsRefunded: Credits,
    egress: Type.Optional(EgressTotals),
  }),
  'ledger.carried-forward': CarriedForward,
};
export type LedgerEvent = EventOf<typeof ledgerEvents>;

/**
 * Granted = available + reserved + used, at every moment. The credits used between two moments, the
 * number of sessions that used them, and their traffic are the difference of two states. Slots are
 * counted, not listed: the sessions' own events tell which sessions hold them, and 100,000 ids
 * would not fit into one message.
 */
export const LedgerState = Type.Object({
  slotsInUse: Type.Integer({ minimum: 0 }),
  sessionsEnded: Type.Integer({ minimum: 0, description: 'number of sessions that have ended' }),
  creditsGranted: Credits,
  creditsAvailable: Credits,
  creditsReserved: Credits,
  creditsUsed: Credits,
  egress: Type.Optional(EgressTotals),
});
export type LedgerState = Static<typeof LedgerState>;

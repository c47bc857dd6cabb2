import { Type, type Static } from 'typebox';
import type { EventOf } from './envelope.ts';
import { SessionId } from './fields.ts';

const Credits = Type.Integer({ minimum: 0, description: 'one credit is one session-minute' });

/** An organization's slots and credits; each line but a grant names the session it is for. */
export const ledgerEvents = {
  'ledger.credits-granted': Type.Object({ credits: Credits }),
  'ledger.slot-reserved': Type.Object({ sessionId: SessionId, credits: Credits }),
  'ledger.credits-reserved': Type.Object({ sessionId: SessionId, credits: Credits }),
  'ledger.slot-released': Type.Object({
    sessionId: SessionId,
    creditsUsed: Credits,
    creditsRefunded: Credits,
  }),
};
export type LedgerEvent = EventOf<typeof ledgerEvents>;

/**
 * Granted = available + reserved + used, at every moment. What was used between two moments, and by
 * how many sessions, is the difference of two states. Slots are counted, not listed: which
 * sessions hold them is in the sessions' own events, and 100,000 ids would not fit one message.
 */
export const LedgerState = Type.Object({
  slotsInUse: Type.Integer({ minimum: 0 }),
  sessionsEnded: Type.Integer({ minimum: 0, description: 'how many ever gave their slot back' }),
  creditsGranted: Credits,
  creditsAvailable: Credits,
  creditsReserved: Credits,
  creditsUsed: Credits,
});
export type LedgerState = Static<typeof LedgerState>;

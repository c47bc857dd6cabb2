import type { ShareMode } from '#events/share.ts';
import type { Hold } from '../connections/steering.ts';
import type { SessionLookup } from './session-directory.ts';
import type { Grant } from './ticket.ts';

type Granted = Pick<SessionLookup, 'shares' | 'handoff'>;

/**
 * When the address of a share or a hand-off ends (ms since the epoch): 0 if it is over, was never
 * there, or is a hand-off that no person holds. Infinity: it is the session's own address.
 */
export function endOf({ shares = [], handoff }: Granted, grant: Grant | null): number {
  if (grant === null) return Infinity;
  if (grant.kind === 'share')
    return Date.parse(shares.find(({ id }) => id === grant.id)?.expiresAt ?? '') || 0;
  const isHeld = handoff?.id === grant.id && handoff.status === 'taken';
  return isHeld ? Date.parse(handoff.expiresAt) : 0;
}

/** What the holder of the address may do. */
export function modeOf({ shares = [] }: Granted, grant: Grant | null): ShareMode {
  if (grant?.kind !== 'share') return 'control';
  return shares.find(({ id }) => id === grant.id)?.mode ?? 'view';
}

/** The hand-off that is taken, with its end; null: none is. */
export function holdOf({ handoff }: Granted): Hold | null {
  return handoff?.status === 'taken'
    ? { handoffId: handoff.id, untilMs: Date.parse(handoff.expiresAt) }
    : null;
}

import type { SessionEvent, SessionState } from '#events/session.ts';
import { sharesMax } from '#events/share.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import type { ShareCommand } from './commands.ts';
import { hasEnded } from './rejections.ts';
import { isFinal } from './session.ts';
import { isLiveShare } from './share.ts';

/** A share's uses are recorded at most once in this time: a client may reconnect in a loop. */
const SHARE_USE_SAMPLE_MS = 1_000;

/** Decides a command of the session's shares. */
export function decideShare(
  command: ShareCommand,
  session: SessionState,
): SessionEvent[] | Rejection {
  const { shareId, now } = command;
  const at = new Date(now).toISOString();
  const shares = session.shares ?? [];
  const share = shares.find(({ id }) => id === shareId);
  if (command.type === 'RecordShareUse') {
    if (session.status !== 'active' || !isLiveShare(share, now)) return [];
    const { lastUsedAt } = share;
    const isRecorded = now - Date.parse(lastUsedAt ?? '') < SHARE_USE_SAMPLE_MS;
    return isRecorded ? [] : [{ type: 'session.share-used', data: { shareId, at } }];
  }
  if (session.status === 'stopping' || isFinal(session.status)) return hasEnded(session);
  if (command.type === 'RevokeShare')
    return share === undefined
      ? reject('SHARE_NOT_FOUND', { session_id: session.id, share_id: shareId })
      : [{ type: 'session.share-revoked', data: { shareId, by: command.by, at } }];
  if (share !== undefined) return [];
  const isFull = shares.filter((one) => isLiveShare(one, now)).length >= sharesMax;
  if (isFull) return reject('SHARE_LIMIT_EXCEEDED', { session_id: session.id, limit: sharesMax });
  const { mode, by, lifetimeMs } = command;
  const expiresAt = new Date(now + lifetimeMs).toISOString();
  return [{ type: 'session.share-created', data: { shareId, mode, by, at, expiresAt } }];
}

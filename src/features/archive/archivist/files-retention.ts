import type { SessionState } from '#events/session.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import type { RetentionRule } from './sweep-objects.ts';

/**
 * The files of a session are kept for so long after its end. Those of a session that the event
 * store does not know (any more) are kept as long after the newest of them.
 */
export function filesRetention({
  readSession,
  retainMs,
  now,
}: {
  /** @throws Error where the session cannot be read: its files are kept until the next sweep */
  readSession: (organizationId: string, id: string) => Promise<SessionState | null>;
  retainMs: number;
  now: () => number;
}): RetentionRule {
  return {
    kind: 'files',
    async judge({ organizationId, id, newestAt }) {
      const session = await readSession(organizationId, id);
      if (session !== null && !isFinal(session.status)) return 'keep';
      const since = session?.endedAt ?? null;
      const until = (since === null ? newestAt : Date.parse(since)) + retainMs;
      return now() > until ? 'expired' : 'keep';
    },
  };
}

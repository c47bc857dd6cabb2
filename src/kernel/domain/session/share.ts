import type { SessionEvent } from '#events/session.ts';
import { sharesMax, type Share } from '#events/share.ts';

type ShareEvent = Extract<SessionEvent, { type: `session.share-${string}` }>;

/** A session's shares after the event; those that have expired leave with the next one made. */
export function sharesAfter(shares: readonly Share[], event: ShareEvent): Share[] {
  const { shareId } = event.data;
  switch (event.type) {
    case 'session.share-created': {
      const { mode, by: createdBy, at: createdAt, expiresAt } = event.data;
      const live = shares.filter((share) => Date.parse(share.expiresAt) > Date.parse(createdAt));
      const made: Share = { id: shareId, mode, createdBy, createdAt, expiresAt };
      return [...live, made].slice(-sharesMax);
    }
    case 'session.share-used':
      return shares.map((share) =>
        share.id === shareId ? { ...share, lastUsedAt: event.data.at } : share,
      );
    case 'session.share-revoked':
      return shares.filter(({ id }) => id !== shareId);
  }
}

/** Whether the share's address still opens the screen. */
export function isLiveShare(share: Share | undefined, now: number): share is Share {
  return share !== undefined && now < Date.parse(share.expiresAt);
}

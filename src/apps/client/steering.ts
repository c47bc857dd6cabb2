import type { Static } from 'typebox';
import type * as schemas from '#src/roles/api/schemas/steering.ts';
import type { Handoff } from './handoff.ts';
import { queryOf, type CallOptions, type Requester } from './requester.ts';

/** The addresses with which a person steers until the hand-off is over; secrets. */
export type TakenHandoff = Static<typeof schemas.TakenHandoff>;
/** `success`: whether it is done what was asked; `note` is for the automation that asked. */
export type CompleteHandoff = Static<typeof schemas.CompleteHandoffBody>;
/** A share without its address. */
export type Share = Static<typeof schemas.ShareList>['shares'][number];
/** A share with its address, which is a secret and is shown this once. */
export type CreatedShare = Static<typeof schemas.CreatedShare>;
export type RevokedShare = Static<typeof schemas.RevokedShare>;
/** `expires_in` as `1h`. */
export type CreateShare = Omit<Static<typeof schemas.CreateShareBody>, 'expires_in'> & {
  expires_in: string;
};

/** The hand-offs and shares of one session, by its id: who else steers or watches it. */
export type SessionSteering = {
  /** Newest first. @throws ServiceError, NoAnswer */
  listHandoffs(id: string, options?: CallOptions): Promise<Handoff[]>;
  /** @throws ServiceError with HANDOFF_NOT_FOUND; NoAnswer */
  getHandoff(id: string, handoffId: string, options?: CallOptions): Promise<Handoff>;
  /**
   * From now on the caller steers alone. @throws ServiceError with HANDOFF_CONFLICT if another
   * user has it; NoAnswer
   */
  takeHandoff(id: string, handoffId: string, options?: CallOptions): Promise<TakenHandoff>;
  /**
   * Gives the browser back to the automation that asked.
   * @throws ServiceError with HANDOFF_CONFLICT if another user has it; NoAnswer
   */
  completeHandoff(
    id: string,
    handoffId: string,
    said: CompleteHandoff,
    options?: CallOptions,
  ): Promise<Handoff>;
  /**
   * Makes an address of the screen for somebody without an API key. Without an answer it is not
   * repeated: there might be two. @throws ServiceError with SHARE_LIMIT_EXCEEDED; NoAnswer
   */
  createShare(id: string, asked: CreateShare, options?: CallOptions): Promise<CreatedShare>;
  /** The live ones, oldest first. @throws ServiceError, NoAnswer */
  listShares(id: string, options?: CallOptions): Promise<Share[]>;
  /** @throws ServiceError with SHARE_NOT_FOUND; NoAnswer */
  revokeShare(id: string, shareId: string, options?: CallOptions): Promise<RevokedShare>;
};

/** @param pathOf the path of a session */
export function createSteering(
  requester: Requester,
  pathOf: (id: string) => string,
): SessionSteering {
  const handoffPath = (id: string, handoffId: string) =>
    `${pathOf(id)}/handoffs/${encodeURIComponent(handoffId)}`;
  return {
    async listHandoffs(id, options) {
      const request = { method: 'GET', path: `${pathOf(id)}/handoffs`, ...options } as const;
      return (await requester.json<{ handoffs: Handoff[] }>(request)).handoffs;
    },
    getHandoff: (id, handoffId, options) =>
      requester.json({ method: 'GET', path: handoffPath(id, handoffId), ...options }),
    takeHandoff: (id, handoffId, options) =>
      requester.json({ method: 'POST', path: `${handoffPath(id, handoffId)}/take`, ...options }),
    completeHandoff(id, handoffId, body, options) {
      const path = `${handoffPath(id, handoffId)}/complete`;
      return requester.json({ method: 'POST', path, body, ...options });
    },
    createShare: (id, body, options) =>
      requester.json({ method: 'POST', path: `${pathOf(id)}/shares`, body, ...options }),
    async listShares(id, options) {
      const request = { method: 'GET', path: `${pathOf(id)}/shares`, ...options } as const;
      return (await requester.json<{ shares: Share[] }>(request)).shares;
    },
    revokeShare(id, shareId, options) {
      const path = `${pathOf(id)}/shares/${encodeURIComponent(shareId)}`;
      return requester.json({ method: 'DELETE', path, ...options });
    },
  };
}

/** The hand-offs of the organization that wait for a person, or that a person has, oldest first. */
export async function listOpenHandoffs(
  requester: Requester,
  query: { status?: 'requested' | 'taken' } = {},
  options: CallOptions = {},
): Promise<Handoff[]> {
  const request = { method: 'GET', path: '/api/handoffs', query: queryOf(query) } as const;
  return (await requester.json<{ handoffs: Handoff[] }>({ ...request, ...options })).handoffs;
}

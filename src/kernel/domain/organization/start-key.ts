import type { Actor } from '#events/envelope.ts';
import type { ApiKey, OrganizationEvent, OrganizationState } from '#events/organization.ts';
import type { Rejection } from '#src/kernel/errors.ts';
import { decideOrganization } from './organization.ts';

/**
 * The key that starts of the service issue for an organization. Its id is `keyId` at first, and
 * `<keyId>_2`, `<keyId>_3`, … after revocations: a later key never gets the id of a revoked one.
 */
export type StartKey = ApiKey;

/** Facts about keys from an organization's history, in addition to its live keys. */
export type KeyHistory = {
  /** Number of key ids that starts have used. */
  startKeys: number;
  /** Hashes of the keys that were revoked, except those that a start replaced by another. */
  revoked: ReadonlySet<string>;
};

/** The live key that starts have issued; undefined if there is none. */
function liveStartKey(state: OrganizationState | null, { keyId }: StartKey): ApiKey | undefined {
  return state?.keys.find((key) => isStartKey(key.keyId, keyId));
}

/** @param start the actor of events that starts record */
export function readKeyHistory(
  events: readonly (OrganizationEvent & { metadata: { actor: Actor } })[],
  { keyId: firstId }: StartKey,
  start: Actor,
): KeyHistory {
  const hashes = new Map<string, string>();
  const revoked = new Set<string>();
  for (const { type, data, metadata } of events) {
    if (type === 'organization.key-issued') hashes.set(data.keyId, data.hash);
    if (type !== 'organization.key-revoked') continue;
    const hash = hashes.get(data.keyId);
    const isByStart = metadata.actor.kind === start.kind && metadata.actor.id === start.id;
    if (hash !== undefined && !isByStart) revoked.add(hash);
  }
  const startKeys = [...hashes.keys()].filter((id) => isStartKey(id, firstId)).length;
  return { startKeys, revoked };
}

/**
 * Issues the key in place of the one that an earlier start issued; no events if the key is live. A
 * revoked key is not issued again.
 */
export function decideStartKey(
  key: StartKey,
  state: OrganizationState | null,
  { startKeys, revoked }: KeyHistory,
): OrganizationEvent[] | Rejection {
  const live = liveStartKey(state, key);
  if (revoked.has(key.hash) || live?.hash === key.hash) return [];
  if (live === undefined) {
    const keyId = startKeys === 0 ? key.keyId : `${key.keyId}_${startKeys + 1}`;
    return decideOrganization({ type: 'IssueKey', key: { ...key, keyId } }, state);
  }
  const { keyId } = live;
  return [
    { type: 'organization.key-revoked', data: { keyId } },
    { type: 'organization.key-issued', data: { ...key, keyId } },
  ];
}

/** Ids that the API generates are longer. */
function isStartKey(id: string, firstId: string): boolean {
  return (
    id === firstId || (id.startsWith(`${firstId}_`) && /^\d+$/.test(id.slice(firstId.length + 1)))
  );
}

import type { Actor } from '#events/envelope.ts';
import type { ApiKey, OrganizationEvent, OrganizationState } from '#events/organization.ts';
import type { Rejected } from '#src/errors.ts';
import { decideOrganization } from './organization.ts';

/**
 * The key of an organization that starts issue. Its id is `keyId` at first, and `<keyId>_2`,
 * `<keyId>_3`, … after revocations: an id that was revoked is never that of a later key.
 */
export type StartKey = ApiKey;

/** What the history of an organization says of keys, beyond those that are live. */
export type KeyHistory = {
  /** How many ids of keys that starts issue there have been. */
  startKeys: number;
  /** Hashes of the keys that were revoked, less those that a start replaced by another. */
  revoked: ReadonlySet<string>;
};

/** The live key that starts have issued; undefined where there is none. */
function liveStartKey(state: OrganizationState | null, { keyId }: StartKey): ApiKey | undefined {
  return state?.keys.find((key) => isStartKey(key.keyId, keyId));
}

/** @param start the actor of what starts do */
export function readKeyHistory(
  events: readonly (OrganizationEvent & { cause: { actor: Actor } })[],
  { keyId: firstId }: StartKey,
  start: Actor,
): KeyHistory {
  const hashes = new Map<string, string>();
  const revoked = new Set<string>();
  for (const { type, data, cause } of events) {
    if (type === 'organization.key-issued') hashes.set(data.keyId, data.hash);
    if (type !== 'organization.key-revoked') continue;
    const hash = hashes.get(data.keyId);
    const isByStart = cause.actor.kind === start.kind && cause.actor.id === start.id;
    if (hash !== undefined && !isByStart) revoked.add(hash);
  }
  const startKeys = [...hashes.keys()].filter((id) => isStartKey(id, firstId)).length;
  return { startKeys, revoked };
}

/**
 * Issues the key in the place of the one that an earlier start issued; nothing where it is live. A
 * key that was revoked is not issued again, and one that is live all the same (an earlier version's
 * start issued it again) is revoked.
 */
export function decideStartKey(
  key: StartKey,
  state: OrganizationState | null,
  { startKeys, revoked }: KeyHistory,
): OrganizationEvent[] | Rejected {
  const live = liveStartKey(state, key);
  const isLive = live?.hash === key.hash;
  if (revoked.has(key.hash))
    return isLive ? [{ type: 'organization.key-revoked', data: { keyId: live.keyId } }] : [];
  if (isLive) return [];
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

/** Ids that the API gives are longer. */
function isStartKey(id: string, firstId: string): boolean {
  return (
    id === firstId || (id.startsWith(`${firstId}_`) && /^\d+$/.test(id.slice(firstId.length + 1)))
  );
}

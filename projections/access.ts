import { STATE_UNKNOWN } from '#events/codec.ts';
import { isOf, type RecordedEvent } from '#events/events.ts';
import type { Role, Tier } from '#events/organization.ts';

/** What an API key gives, as its organization stands now. */
export type KeyAccess = {
  organizationId: string;
  tier: Tier;
  keyId: string;
  role: Role;
  userId: string;
};

export type OrganizationAccess = { name: string; tier: Tier };

/**
 * Who may come in: the fold of the organizations' events, kept in memory by each process that
 * authenticates (some hundred bytes a key), so that a request asks nobody. Feed it from
 * `log.follow({ subjects: filters.organizations, after: 0 })`. A revoked key is refused as soon as
 * its event is applied: how long that takes is the follower's delay, not promised here.
 */
export type Access = {
  /**
   * Other aggregates' events and those already applied change nothing.
   * @throws Error where the event's state is of another version: its keys cannot be told.
   */
  apply(event: RecordedEvent): void;
  /** By the SHA-256 of the key in lower-case hex; null: no such key, or revoked. */
  byKeyHash(hash: string): KeyAccess | null;
  organization(organizationId: string): OrganizationAccess | null;
};

type Known = OrganizationAccess & { sequence: number; hashes: readonly string[] };

export function createAccess(): Access {
  const organizations = new Map<string, Known>();
  const keys = new Map<string, KeyAccess>();

  return {
    apply(event) {
      if (!isOf('organization', event)) return;
      const { organizationId } = event.aggregate;
      const known = organizations.get(organizationId);
      if (known !== undefined && event.sequence <= known.sequence) return;
      if ((event.state as unknown) === STATE_UNKNOWN)
        throw new Error(`${event.type} ${event.sequence}: its state is of another version`);
      const { name, tier } = event.state;
      for (const hash of known?.hashes ?? []) keys.delete(hash);
      for (const { keyId, hash, role, userId } of event.state.keys)
        keys.set(hash, Object.freeze({ organizationId, tier, keyId, role, userId }));
      const hashes = event.state.keys.map(({ hash }) => hash);
      organizations.set(organizationId, { name, tier, sequence: event.sequence, hashes });
    },
    byKeyHash(hash) {
      return keys.get(hash) ?? null;
    },
    organization(organizationId) {
      const known = organizations.get(organizationId);
      return known === undefined ? null : { name: known.name, tier: known.tier };
    },
  };
}

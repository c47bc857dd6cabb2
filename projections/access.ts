import { isOf, type RecordedEvent } from '#events/events.ts';
import type { Role, Tier } from '#events/organization.ts';

/** What an API key grants, by the current state of its organization. */
export type KeyAccess = {
  organizationId: string;
  tier: Tier;
  keyId: string;
  role: Role;
  userId: string;
};

export type OrganizationAccess = { name: string; tier: Tier };

/**
 * API keys and organizations, folded from the organizations' events. Each process that
 * authenticates keeps it in memory (some hundred bytes a key), so that a request needs no round
 * trip. Feed it from `eventStore.subscribe({ subjects: filters.organizations, after: 0 })`. A
 * revoked key is refused once its event is applied; the delay is that of the subscription.
 */
export type Access = {
  /**
   * Idempotent. Events of other aggregates are ignored.
   * @throws Error if the event's state is of another version: its keys are unknown.
   */
  apply(event: RecordedEvent): void;
  /** Looks a key up by its SHA-256 in lower-case hex; null: unknown or revoked. */
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
      if (event.state === null)
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

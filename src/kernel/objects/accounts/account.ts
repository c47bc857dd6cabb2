import { PUT_LEASE_MS } from '../object-store.ts';

/** What an organization has in the object store, and what it is putting there, in bytes. */
export type Account = {
  stored: number;
  /** By the put's id. One whose time is over counts no more: its process was killed. */
  puts: Readonly<Record<string, { bytes: number; until: number }>>;
  /** Counts the changes, by which a recount knows that there was none meanwhile. */
  changes: number;
};

/**
 * What each object takes beside its bytes: its head, subjects and metadata. With it, very many
 * small objects are bounded, too.
 */
const OBJECT_BYTES = 1_024;

/** What an object of so many bytes takes. */
export function room(bytes: number): number {
  return bytes + OBJECT_BYTES;
}

/** All that counts against the organization's bound. */
export function taken({ stored, puts }: Account, now: number): number {
  return live(puts, now).reduce((sum, [, { bytes }]) => sum + bytes, stored);
}

/** The account with the put's reservation of so many bytes; null: that is more than the bound. */
export function reserve(
  account: Account,
  put: { id: string; bytes: number },
  { maxBytes, now }: { maxBytes: number; now: number },
): Account | null {
  const { [put.id]: earlier, ...others } = account.puts;
  const before = { ...account, puts: others };
  const bytes = Math.max(put.bytes, earlier?.bytes ?? 0);
  if (taken(before, now) + bytes > maxBytes) return null;
  const renewed = { bytes, until: now + PUT_LEASE_MS };
  return changed({ ...before, puts: { ...before.puts, [put.id]: renewed } }, now);
}

/** The account after the put has ended; `bytes`: what the organization has more, or less, by it. */
export function settle(account: Account, id: string, bytes: number, now: number): Account {
  const { [id]: _, ...puts } = account.puts;
  return changed({ ...account, puts, stored: Math.max(0, account.stored + bytes) }, now);
}

/** The account with what was counted; null: something has changed since, or is about to. */
export function recount(account: Account, since: Account, stored: number, now: number) {
  const isQuiet = account.changes === since.changes && live(account.puts, now).length === 0;
  return isQuiet && account.stored !== stored ? changed({ ...account, stored }, now) : null;
}

function changed(account: Account, now: number): Account {
  const puts = Object.fromEntries(live(account.puts, now));
  return { ...account, puts, changes: account.changes + 1 };
}

function live(puts: Account['puts'], now: number) {
  return Object.entries(puts).filter(([, { until }]) => until > now);
}

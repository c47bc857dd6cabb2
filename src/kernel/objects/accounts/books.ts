import { objectWritersOf } from '#events/writers.ts';
import { keptBriefly } from '#src/kernel/async/kept-briefly.ts';
import {
  ObjectStoreFull,
  OrganizationStoreFull,
  type ObjectStore,
  type StoreUse,
} from '../object-store.ts';
import { recount, reserve, room, settle, type Account } from './account.ts';
import type { Accounts } from './accounts.ts';

/** Of the store, and of an organization's part of it: what only profiles may fill. */
const RESERVE_SHARE = 0.1;
/** So many organizations fill a store; a fourth one is refused what is not a profile. */
const ORGANIZATIONS = 3;
/** The kind of objects that the reserve is for: a save that fails loses log-ins for good. */
const RESERVED_FOR = 'profiles';
/** The store's size is asked for at most so often. */
const USE_MS = 500;
/** The kinds that organizations have; what they have is counted kind by kind. */
export const KINDS = Object.keys(objectWritersOf);

/** Of an object, by its key. */
export type Owner = { kind: string; organizationId: string };

export type BooksOptions = {
  /** What an organization may store; null: a third of a store that has a size. */
  organizationMaxBytes: number | null;
  now: () => number;
};

/** What is decided on the accounts of organizations, and on the size of the whole store. */
export type Books = ReturnType<typeof openBooks>;

export function openBooks(
  objects: Pick<ObjectStore, 'list' | 'use'>,
  accounts: Accounts,
  { organizationMaxBytes, now }: BooksOptions,
) {
  const briefly = keptBriefly<StoreUse | null>(USE_MS);
  const use = () => briefly('use', () => objects.use());

  async function count(organizationId: string): Promise<number> {
    let bytes = 0;
    for (const kind of KINDS)
      for await (const object of objects.list(`${kind}/${organizationId}/`))
        bytes += room(object.bytes);
    return bytes;
  }
  /** The first change of an account begins with what is there. */
  async function change(organizationId: string, next: (account: Account) => Account | null) {
    let isNew = false;
    const changed = await accounts.change(organizationId, (account) => {
      isNew = account === null;
      return account && next(account);
    });
    if (!isNew) return changed;
    const stored = await count(organizationId);
    const begun = { stored, puts: {}, changes: 0 };
    return accounts.change(organizationId, (account) => next(account ?? begun));
  }
  return {
    use,
    /** Has the put reserve so many bytes. @throws ObjectStoreFull; OrganizationStoreFull */
    async take({ kind, organizationId }: Owner, id: string, bytes: number): Promise<void> {
      const whole = await use();
      const part = kind === RESERVED_FOR ? 1 : 1 - RESERVE_SHARE;
      if (whole !== null && whole.bytes + bytes > whole.maxBytes * part)
        throw new ObjectStoreFull();
      const third = whole === null ? Infinity : whole.maxBytes / ORGANIZATIONS;
      const maxBytes = Math.floor((organizationMaxBytes ?? third) * part);
      const taken = await change(organizationId, (account) =>
        reserve(account, { id, bytes }, { maxBytes, now: now() }),
      );
      if (taken === null) throw new OrganizationStoreFull(maxBytes);
    },
    /** Keeps what a put that goes on has reserved. */
    async renew({ organizationId }: Owner, id: string): Promise<void> {
      const bound = { maxBytes: Infinity, now: now() };
      await change(organizationId, (account) => reserve(account, { id, bytes: 0 }, bound));
    },
    /** Ends a put; `bytes`: what the organization has more, or less. */
    async settle({ organizationId }: Owner, id: string, bytes: number): Promise<void> {
      await change(organizationId, (account) => settle(account, id, bytes, now()));
    },
    /** Sets wrong accounts right; returns how many. */
    async recount(signal?: AbortSignal): Promise<number> {
      let corrected = 0;
      for (const organizationId of await accounts.organizations()) {
        signal?.throwIfAborted();
        const since = await accounts.read(organizationId);
        if (since === null) continue;
        const stored = await count(organizationId);
        const changed = await accounts.change(
          organizationId,
          (account) => account && recount(account, since, stored, now()),
        );
        if (changed !== null) corrected += 1;
      }
      return corrected;
    },
  };
}

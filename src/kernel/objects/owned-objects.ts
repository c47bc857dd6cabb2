import { newId } from '#src/kernel/ids.ts';
import { room } from './accounts/account.ts';
import type { Accounts } from './accounts/accounts.ts';
import { KINDS, openBooks, type Books, type Owner } from './accounts/books.ts';
import {
  PUT_LEASE_MS,
  type ObjectStore,
  type PutOptions,
  type StoredObject,
} from './object-store.ts';

/** An object store in which each organization has an account. */
export type OwnedObjects = ObjectStore & {
  /**
   * Sets right the accounts that a killed process, or another version, has left wrong; returns how
   * many.
   */
  recount(signal?: AbortSignal): Promise<number>;
};

export type OwnedObjectsOptions = {
  /** What an organization may store; null: a third of a store that has a size. */
  organizationMaxBytes: number | null;
  now?: () => number;
  onFailure: (error: unknown, what: string) => void;
};

/** What a put of unknown length reserves at a time. */
const STEP_BYTES = 8 * 1024 ** 2;
/** A put that waits for its body renews its reservation. */
const RENEW_MS = PUT_LEASE_MS / 3;

const NOT_SETTLED = 'an account of stored bytes is wrong until the next sweep';
const NOT_RENEWED = 'a reservation of bytes was not renewed';

/**
 * Gives each object an owner: its bytes are reserved in its organization's account before the first
 * one is stored, and given back when it is removed or replaced.
 */
export function withAccounts(
  objects: ObjectStore,
  accounts: Accounts,
  { organizationMaxBytes, now = Date.now, onFailure }: OwnedObjectsOptions,
): OwnedObjects {
  const books = openBooks(objects, accounts, { organizationMaxBytes, now });

  async function settle(owner: Owner, id: string, bytes: number): Promise<void> {
    await books.settle(owner, id, bytes).catch((error: unknown) => onFailure(error, NOT_SETTLED));
  }
  async function put(
    key: string,
    body: AsyncIterable<Uint8Array>,
    { bytes: expected = 0, freed, ...options }: PutOptions = {},
  ): Promise<StoredObject> {
    const owner = ownerOf(key);
    if (!isOwned(owner)) return objects.put(key, body, freed ? { ...options, freed } : options);
    const id = newId('put');
    await books.take(owner, id, room(expected));
    const renewing = setInterval(() => {
      books.renew(owner, id).catch((error: unknown) => onFailure(error, NOT_RENEWED));
    }, RENEW_MS).unref();
    let more = 0;
    const told = (bytes: number) => {
      more -= room(bytes);
      freed?.(bytes);
    };
    try {
      const paid = reserved(books, owner, id, body, expected);
      const stored = await objects.put(key, paid, { ...options, freed: told });
      more += room(stored.bytes);
      return stored;
    } finally {
      clearInterval(renewing);
      await settle(owner, id, more);
    }
  }

  /** Does a removal, and gives back what it has freed, also where it breaks off. */
  async function giveBack<Result>(
    owner: Owner,
    remove: (freed: (bytes: number) => void) => Promise<Result>,
    told?: (bytes: number) => void,
  ): Promise<Result> {
    let back = 0;
    if (!isOwned(owner)) return remove((bytes) => told?.(bytes));
    try {
      return await remove((bytes) => {
        back += room(bytes);
        told?.(bytes);
      });
    } finally {
      if (back > 0) await settle(owner, '', -back);
    }
  }
  return {
    ...objects,
    use: books.use,
    put,
    remove: (key, { freed: told } = {}) =>
      giveBack(ownerOf(key), (freed) => objects.remove(key, { freed }), told),
    removeAll: (prefix, { freed: told } = {}) =>
      giveBack(ownerOf(prefix), (freed) => objects.removeAll(prefix, { freed }), told),
    recount: (signal) => books.recount(signal),
    [Symbol.asyncDispose]: () => objects[Symbol.asyncDispose](),
  };
}

/** The body, of which no byte passes that is not reserved. */
async function* reserved(
  books: Books,
  owner: Owner,
  id: string,
  body: AsyncIterable<Uint8Array>,
  expected: number,
): AsyncGenerator<Uint8Array, void, void> {
  let held = room(expected);
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    const wanted = room(bytes);
    if (wanted > held)
      held = await books.take(owner, id, wanted + STEP_BYTES).then(
        () => wanted + STEP_BYTES,
        // Near the bound, what has come may still fit.
        () => books.take(owner, id, wanted).then(() => wanted),
      );
    yield piece;
  }
}

/** What is of no such kind is the service's own, as the name of its event store. */
function isOwned({ kind }: Owner): boolean {
  return KINDS.includes(kind);
}

/** @throws RangeError for a name without an owner */
function ownerOf(name: string): Owner {
  const [kind = '', organizationId = ''] = name.split('/');
  if (organizationId === '') throw new RangeError(`an object without an owner: ${name}`);
  return { kind, organizationId };
}

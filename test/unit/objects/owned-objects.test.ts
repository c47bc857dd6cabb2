import { beforeEach, expect, test } from 'vitest';
import { createMemoryAccounts } from '#src/kernel/objects/accounts/accounts.memory.ts';
import { room, taken } from '#src/kernel/objects/accounts/account.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import {
  ObjectStoreFull,
  ObjectStoreUnavailable,
  OrganizationStoreFull,
  PUT_LEASE_MS,
} from '#src/kernel/objects/object-store.ts';
import { KINDS } from '#src/kernel/objects/accounts/books.ts';
import { withAccounts, type OwnedObjects } from '#src/kernel/objects/owned-objects.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** Who owns the bytes of an object store, and how many each organization may have. */

useVirtualTime();

const MIB = 1024 ** 2;
const rethrow = (error: unknown) => {
  throw error;
};
let offsetMs = 0;
const now = () => Date.now() + offsetMs;
let accounts: ReturnType<typeof createMemoryAccounts>;
let below: ReturnType<typeof createMemoryObjectStore>;
beforeEach(() => {
  offsetMs = 0;
  accounts = createMemoryAccounts();
});

/** A store of so many MiB; each organization may have `each`, or a third. */
function open({ whole = 30, each = null as number | null } = {}): OwnedObjects {
  below = createMemoryObjectStore({ maxBytes: whole * MIB, now });
  const organizationMaxBytes = each === null ? null : each * MIB;
  return withAccounts(below, accounts, { organizationMaxBytes, now, onFailure: rethrow });
}
async function* body(mib: number, pieces = 1) {
  for (let at = 0; at < pieces; at += 1) {
    yield Buffer.alloc((mib / pieces) * MIB);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
/** What the organization's account has, in bytes. */
async function accountOf(organizationId: string): Promise<number> {
  const account = await accounts.read(organizationId);
  return account === null ? 0 : taken(account, now());
}
/** What the organization has in the store, as it counts. */
async function storedBy(organizationId: string): Promise<number> {
  let bytes = 0;
  for (const kind of KINDS)
    for await (const object of below.list(`${kind}/${organizationId}/`))
      bytes += room(object.bytes);
  return bytes;
}

test('of parallel puts exactly those are kept for which there is room', async () => {
  const objects = open({ each: 10 });
  // 9 MiB are for what is no profile: four of 2 MiB.
  const puts = Array.from({ length: 20 }, (_, at) =>
    objects.put(`files/acme/ses_1/${at}`, body(2, 4), at % 2 === 0 ? { bytes: 2 * MIB } : {}),
  );
  const outcomes = await Promise.allSettled(puts);
  const refused = outcomes.filter(({ status }) => status === 'rejected');
  expect(outcomes.length - refused.length).toBe(4);
  for (const one of refused)
    expect((one as PromiseRejectedResult).reason).toBeInstanceOf(OrganizationStoreFull);
  expect(await storedBy('acme')).toBe(4 * room(2 * MIB));
  expect(await accountOf('acme')).toBe(4 * room(2 * MIB));
});

test('what is too much is refused before a byte is read, or where its length is found', async () => {
  const objects = open({ each: 10 });
  let read = 0;
  async function* counted() {
    for await (const piece of body(12, 12)) {
      read += piece.length;
      yield piece;
    }
  }
  await expect(
    objects.put('files/acme/ses_1/a', counted(), { bytes: 12 * MIB }),
  ).rejects.toBeInstanceOf(OrganizationStoreFull);
  expect(read).toBe(0);
  await expect(objects.put('files/acme/ses_1/a', counted())).rejects.toBeInstanceOf(
    OrganizationStoreFull,
  );
  expect(read).toBe(9 * MIB);
  expect([await storedBy('acme'), await accountOf('acme')]).toEqual([0, 0]);
});

test('what is replaced or removed is given back', async () => {
  const objects = open({ each: 10 });
  await objects.put('files/acme/ses_1/a', body(4));
  await objects.put('files/acme/ses_1/a', body(3));
  await objects.put('files/acme/ses_1/b', body(3));
  await objects.put('files/acme/ses_2/c', body(2));
  expect(await accountOf('acme')).toBe(await storedBy('acme'));
  await objects.remove('files/acme/ses_1/a');
  await objects.remove('files/acme/ses_1/a');
  expect(await objects.removeAll('files/acme/ses_1/')).toBe(1);
  expect(await accountOf('acme')).toBe(room(2 * MIB));
  async function* failing() {
    yield* body(1);
    throw new Error('cut off');
  }
  await expect(objects.put('files/acme/ses_2/d', failing())).rejects.toThrow('cut off');
  expect(await accountOf('acme')).toBe(room(2 * MIB));
});

test('no organization takes more than a third, and others store what they may', async () => {
  const objects = open();
  await objects.put('files/acme/ses_1/a', body(8));
  await expect(objects.put('files/acme/ses_1/b', body(2))).rejects.toBeInstanceOf(
    OrganizationStoreFull,
  );
  await objects.put('files/zeta/ses_1/a', body(8));
  expect(await storedBy('zeta')).toBe(room(8 * MIB));
});

test('the last tenth, of the store and of an organization, is for profiles', async () => {
  const objects = open();
  for (const organization of ['a', 'b', 'c']) {
    await objects.put(`files/${organization}/ses_1/a`, body(8.9));
    await expect(
      objects.put(`recordings/${organization}/ses_1/b`, body(0.5)),
    ).rejects.toBeInstanceOf(OrganizationStoreFull);
    // The store's size is known to half a second.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  const refusal = objects.put('files/d/ses_1/a', body(1), { bytes: MIB });
  await expect(refusal).rejects.toBeInstanceOf(ObjectStoreFull);
  await expect(refusal).rejects.not.toBeInstanceOf(OrganizationStoreFull);
  for (const organization of ['a', 'd'])
    await objects.put(`profiles/${organization}/prf_1/v`, body(1), { bytes: MIB });
});

test('a put that was killed counts until its lease is over, one that goes on as long', async () => {
  const objects = open({ each: 10 });
  const puts = { put_1: { bytes: 8 * MIB, until: now() + PUT_LEASE_MS } };
  await accounts.change('acme', () => ({ stored: 0, changes: 1, puts }));
  await expect(
    objects.put('files/acme/ses_1/a', body(2), { bytes: 2 * MIB }),
  ).rejects.toBeInstanceOf(OrganizationStoreFull);
  offsetMs += PUT_LEASE_MS;
  async function* slow() {
    yield Buffer.alloc(MIB);
    await new Promise((resolve) => setTimeout(resolve, 2 * PUT_LEASE_MS));
    expect(await accountOf('acme')).toBe(room(7 * MIB));
    yield Buffer.alloc(6 * MIB);
  }
  await objects.put('files/acme/ses_1/a', slow(), { bytes: 7 * MIB });
  expect(await accountOf('acme')).toBe(room(7 * MIB));
});

test('an account begins with what is there, and a recount sets a wrong one right', async () => {
  const objects = open({ each: 10 });
  await below.put('files/acme/ses_1/old', body(6));
  await expect(
    objects.put('files/acme/ses_1/a', body(4), { bytes: 4 * MIB }),
  ).rejects.toBeInstanceOf(OrganizationStoreFull);
  await objects.put('files/acme/ses_1/b', body(1));
  expect(await accountOf('acme')).toBe(room(6 * MIB) + room(MIB));
  // Removed by a process that has no accounts, or that was killed before it had changed it.
  await below.remove('files/acme/ses_1/old');
  expect(await objects.recount()).toBe(1);
  expect(await accountOf('acme')).toBe(room(MIB));
  expect(await objects.recount()).toBe(0);
});

test('a recount beside a put leaves the account as it is', async () => {
  const objects = open({ each: 10 });
  await objects.put('files/acme/ses_1/a', body(1));
  const putting = objects.put('files/acme/ses_1/b', body(2, 8));
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(await objects.recount()).toBe(0);
  await putting;
  expect(await accountOf('acme')).toBe(await storedBy('acme'));
});

test('a recount between the end of a put and its account leaves the account as it is', async () => {
  const objects = open({ each: 10 });
  await objects.put('files/acme/ses_1/a', body(1));
  const { put } = below;
  let recounted: number | null = null;
  below.put = async (...given) => {
    const stored = await put(...given);
    recounted = await objects.recount();
    return stored;
  };
  const same = withAccounts(below, accounts, {
    organizationMaxBytes: 10 * MIB,
    now,
    onFailure: rethrow,
  });
  await same.put('files/acme/ses_1/b', body(2));
  expect(recounted).toBe(0);
  expect(await accountOf('acme')).toBe(await storedBy('acme'));
});

test('a recount leaves an account that was changed while it counted', async () => {
  open({ each: 10 });
  const { list } = below;
  let isFirst = true;
  below.list = async function* (prefix) {
    yield* list(prefix);
    if (prefix !== 'files/acme/' || !isFirst) return;
    isFirst = false;
    await objects.put('files/acme/ses_1/c', body(2));
  };
  const options = { organizationMaxBytes: 10 * MIB, now, onFailure: rethrow };
  const objects = withAccounts(below, accounts, options);
  isFirst = false;
  await objects.put('files/acme/ses_1/a', body(1));
  isFirst = true;
  expect(await objects.recount()).toBe(0);
  expect(await accountOf('acme')).toBe(await storedBy('acme'));
});

test('what belongs to no organization has no account', async () => {
  const objects = open();
  await objects.put('store/event-store', body(1));
  expect(await accounts.organizations()).toEqual([]);
  await objects.remove('store/event-store');
  expect(await accounts.organizations()).toEqual([]);
  expect(() => objects.removeAll('files/')).toThrow(RangeError);
});

test('where the account cannot be read nothing is stored', async () => {
  const objects = open();
  accounts.change = () => Promise.reject(new ObjectStoreUnavailable());
  await expect(objects.put('files/acme/ses_1/a', body(1))).rejects.toThrow(ObjectStoreUnavailable);
  expect(await storedBy('acme')).toBe(0);
});

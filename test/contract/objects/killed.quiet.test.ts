import { randomBytes } from 'node:crypto';
import { pack as packTar } from 'tar-stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createMasterKeys } from '#src/kernel/master-keys.ts';
import { room, taken } from '#src/kernel/objects/accounts/account.ts';
import type { Accounts } from '#src/kernel/objects/accounts/accounts.ts';
import { createJetStreamAccounts } from '#src/kernel/objects/jetstream/jetstream-accounts.ts';
import { createJetStreamObjectStore } from '#src/kernel/objects/jetstream/jetstream-object-store.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import { withAccounts, type OwnedObjects } from '#src/kernel/objects/owned-objects.ts';
import { openProfileVault } from '#src/features/profiles/profile-vault.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';

/** Objects and accounts on a NATS that is killed in the middle of what is done to them. */

const MIB = 1024 ** 2;
const never = new AbortController().signal;

let nats: RealNats;
let connection: JetStreamConnection;
let accounts: Accounts;
let below: ObjectStore;
let objects: OwnedObjects;
/** After how many changes of accounts NATS is killed; null: never. */
let killAtChange: number | null;
/** NATS is killed, and starts again once a put has been given up. */
let isAway: boolean;
/** A put is given up after this time without an answer. */
const ANSWER_MS = 500;
beforeEach(async () => {
  nats = await startNats();
  connection = await connectJetStream({ url: nats.url });
  const real = createJetStreamAccounts(connection);
  killAtChange = null;
  accounts = {
    ...real,
    async change(organizationId, next) {
      if (killAtChange !== null && killAtChange-- === 0) await restart();
      return real.change(organizationId, next);
    },
  };
  const store = createJetStreamObjectStore(connection, { answerMs: ANSWER_MS });
  isAway = false;
  below = {
    ...store,
    put: (key, body, options) =>
      store.put(key, body, options).catch(async (error: unknown) => {
        if (isAway) await nats.restart();
        isAway = false;
        throw error;
      }),
  };
  const onFailure = () => undefined;
  objects = withAccounts(below, accounts, { organizationMaxBytes: null, onFailure });
});
afterEach(async () => {
  await connection[Symbol.asyncDispose]();
  await nats[Symbol.asyncDispose]();
});

async function restart(): Promise<void> {
  await nats.kill();
  await nats.restart();
}
async function storedBy(organizationId: string): Promise<number> {
  let bytes = 0;
  for (const kind of ['files', 'profiles'])
    for await (const object of below.list(`${kind}/${organizationId}/`))
      bytes += room(object.bytes);
  return bytes;
}
async function accountOf(organizationId: string): Promise<number> {
  const account = await accounts.read(organizationId);
  return account === null ? 0 : taken(account, Date.now());
}
async function all(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(source));
}

const owner = { organizationId: 'acme', profileId: 'prf_1' };
const keysOf = (...letters: string[]) =>
  createMasterKeys(letters.map((letter) => Buffer.alloc(32, letter)));

describe('a profile that is sealed again while NATS is killed', () => {
  test.each([
    ['with the first bytes', 0, 'away'],
    ['in the middle', 1.5 * MIB, 'away'],
    ['behind the last byte', Infinity, 'away'],
    ['in the middle, and there again at once', 1.5 * MIB, 'back'],
  ])('%s is whole, by one of the two keys, and is sealed at the next try', async (_, at, then) => {
    await using folder = await scratchDir();
    async function kill(): Promise<void> {
      if (then === 'back') return restart();
      isAway = true;
      await nats.kill();
    }
    /** NATS is killed once so many bytes of the new archive were given to it, or at its end. */
    async function* killing(body: AsyncIterable<Uint8Array>) {
      let [bytes, isKilled] = [0, false];
      for await (const piece of body) {
        yield piece;
        bytes += piece.length;
        if (bytes > at && !isKilled) await kill();
        isKilled ||= bytes > at;
      }
      if (!isKilled) await kill();
    }
    const openVault = (name: string, store: Pick<ObjectStore, 'put' | 'get' | 'remove'>) =>
      openProfileVault({
        objects: store,
        masterKeys: keysOf(...name.split('')),
        folder: `${folder.path}/${name}`,
        bytesMax: 16 * MIB,
      });
    const before = await openVault('k', objects);
    const packed = packTar();
    packed.entry({ name: './Default/History' }, randomBytes(3 * MIB));
    packed.finalize();
    const tar = await all(packed as AsyncIterable<Buffer>);
    async function* given() {
      yield tar;
    }
    const { sha256 } = await before.save(owner, { live: null, tar: given() }, never);
    const killed = await openVault('nk', {
      ...objects,
      put: (key, body, options) => objects.put(key, killing(body), options),
    });
    const sealing = killed.sealAgain(owner, sha256, never);
    if (then === 'away') await expect(sealing).rejects.toThrow();
    else await sealing.catch(() => undefined); // it may have been given up

    const both = await openVault('nk', objects);
    const read = async () => (await all((await both.load(owner, sha256)).tar)).equals(tar);
    expect(await read()).toBe(true);
    await both.sealAgain(owner, sha256, never);
    expect((await both.load(owner, sha256)).isOfOlderKey).toBe(false);
    expect(await read()).toBe(true);
    await objects.recount();
    expect(await accountOf('acme')).toBe(await storedBy('acme'));
  });
});

describe('a recount of accounts while NATS is killed', () => {
  const organizations = Array.from({ length: 12 }, (_, at) => `acme-${at}`);
  async function* bytes(count: number) {
    yield Buffer.alloc(count);
  }

  test('loses no account, and what is wrong afterwards the next one sets right', async () => {
    for (const [at, name] of organizations.entries()) {
      await objects.put(`files/${name}/ses_1/kept`, bytes(1_000 + at));
      // Stored by a process that was killed before it had changed the account.
      await below.put(`files/${name}/ses_1/more`, bytes(500));
    }
    killAtChange = 5;
    const first = await objects.recount().catch(() => 0);
    const second = await objects.recount();
    expect(first + second).toBe(organizations.length);
    for (const name of organizations) expect(await accountOf(name)).toBe(await storedBy(name));
    expect(await objects.recount()).toBe(0);
  });

  test('puts and removals beside it are in the accounts in the end', async () => {
    for (const name of organizations) await objects.put(`files/${name}/ses_1/a`, bytes(100));
    killAtChange = 7;
    const beside = organizations.flatMap((name) => [
      objects.put(`files/${name}/ses_1/b`, bytes(300)).catch(() => undefined),
      objects.remove(`files/${name}/ses_1/a`).catch(() => undefined),
    ]);
    await Promise.all([objects.recount().catch(() => 0), ...beside]);
    await objects.recount();
    for (const name of organizations) expect(await accountOf(name)).toBe(await storedBy(name));
  });
});

import { readdir } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { pack as packTar } from 'tar-stream';
import { describe, expect, it, test } from 'vitest';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import { createMasterKeys } from '#src/kernel/master-keys.ts';
import { pack, unpack } from '#src/features/profiles/packed.ts';
import { openProfileVault } from '#src/features/profiles/profile-vault.ts';
import { ArchiveDamaged } from '#src/features/profiles/read-exactly.ts';
import { seal, unseal } from '#src/features/profiles/sealed.ts';
import { scratchDir } from '#test/support/scratch.ts';

const keysOf = (...letters: string[]) =>
  createMasterKeys(letters.map((letter) => Buffer.alloc(32, letter)));
const masterKeys = keysOf('k');
const owner = { organizationId: 'acme', profileId: 'prf_1' };
const MIB = 1024 ** 2;
/** The plain bytes of a sealed archive's frame. */
const FRAME = 256 * 1024;

async function* from(bytes: Uint8Array, step = 100_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += step) yield bytes.subarray(at, at + step);
}
async function all(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source) chunks.push(chunk);
  return Buffer.concat(chunks);
}
const sealed = (bytes: Uint8Array) => all(seal(masterKeys.current, 'acme/prf_1', from(bytes)));
const unsealed = (bytes: Uint8Array, by = masterKeys, of = 'acme/prf_1') =>
  all(unseal(by, of, from(bytes, 1_000)));

describe('a sealed archive', () => {
  test.each([0, 1, FRAME, FRAME + 1, 3 * FRAME + 7])('of %i bytes is opened', async (size) => {
    const bytes = randomBytes(size);
    expect((await unsealed(await sealed(bytes))).equals(bytes)).toBe(true);
  });

  it('never looks the same twice', async () => {
    const bytes = randomBytes(1_000);
    expect((await sealed(bytes)).equals(await sealed(bytes))).toBe(false);
  });

  it('is opened neither with another master key nor as another profile’s', async () => {
    const archive = await sealed(randomBytes(1_000));
    await expect(unsealed(archive, keysOf('x'))).rejects.toThrow(ArchiveDamaged);
    await expect(unsealed(archive, masterKeys, 'acme/prf_2')).rejects.toThrow(ArchiveDamaged);
  });

  it('shows each change of a byte, each cut, and what was added', async () => {
    const archive = await sealed(randomBytes(600_000));
    for (const at of [0, 9, 20, 49, 68, 300_000, archive.length - 1]) {
      const changed = Buffer.from(archive);
      changed[at] = (changed[at] ?? 0) ^ 1;
      await expect(unsealed(changed), `byte ${at}`).rejects.toThrow(ArchiveDamaged);
    }
    const frame = 4 + FRAME + 16;
    for (const length of [0, 10, 20, 48, 58, 48 + frame, 48 + 2 * frame, archive.length - 1])
      await expect(unsealed(archive.subarray(0, length))).rejects.toThrow('cut off');
    await expect(unsealed(Buffer.concat([archive, Buffer.from('x')]))).rejects.toThrow('follows');
    const swapped = Buffer.concat([
      archive.subarray(0, 48),
      archive.subarray(48 + frame, 48 + 2 * frame),
      archive.subarray(48, 48 + frame),
      archive.subarray(48 + 2 * frame),
    ]);
    await expect(unsealed(swapped)).rejects.toThrow(ArchiveDamaged);
  });
});

describe('a packed archive', () => {
  const cookies = [{ name: 'session', value: 'secret', domain: '.shop.example' }];
  const items: [string, string][] = [['a', '1']];
  const live = { cookies, localStorage: [{ origin: 'https://shop.example', items }] };

  it('is unpacked with what was in memory', async () => {
    const tar = randomBytes(300_000);
    const packed = await all(pack({ live, tar: from(tar) }, MIB));
    const { live: found, tar: again } = await unpack(from(packed, 1_000), MIB);
    expect(found).toEqual(live);
    expect((await all(again)).equals(tar)).toBe(true);
  });

  it('is refused where it is larger than it may be, packed or unpacked', async () => {
    const tar = Buffer.alloc(2 * MIB);
    await expect(all(pack({ live: null, tar: from(tar) }, MIB))).rejects.toThrow('more than');
    const bomb = await all(pack({ live: null, tar: from(tar) }, 4 * MIB));
    expect(bomb.length).toBeLessThan(10_000);
    const { tar: again } = await unpack(from(bomb), MIB);
    await expect(all(again)).rejects.toThrow('more than');
  });
});

describe('the vault', () => {
  async function openVault(
    folder: string,
    { keys: masterKeys = keysOf('k'), objects = createMemoryObjectStore() } = {},
  ) {
    const vault = await openProfileVault({ objects, masterKeys, folder, bytesMax: MIB });
    const keys = async () => {
      const found: string[] = [];
      for await (const { key } of objects.list('profiles/acme/prf_1/')) found.push(key);
      return found;
    };
    return { vault, keys, objects };
  }
  const signal = new AbortController().signal;
  async function tarOf(name: string, text: string): Promise<Buffer> {
    const tar = packTar();
    tar.entry({ name }, text);
    tar.finalize();
    return all(tar as AsyncIterable<Buffer>);
  }

  it('stores an archive under the hash of what it packed, and gives it back', async () => {
    await using folder = await scratchDir();
    const { vault, keys } = await openVault(folder.path);
    const tar = await tarOf('./Default/Preferences', '{}');
    const stored = await vault.save(owner, { live: null, tar: from(tar) }, signal);
    expect(await keys()).toEqual([`profiles/acme/prf_1/${stored.sha256}`]);
    expect(stored).toMatchObject({ contents: { origins: [], cookies: [] } });
    const { tar: again } = await vault.load(owner, stored.sha256);
    expect((await all(again)).equals(tar)).toBe(true);
    expect(await readdir(folder.path)).toEqual([]);
    await vault.remove(owner, stored.sha256);
    await expect(vault.load(owner, stored.sha256)).rejects.toThrow('not stored any more');
  });

  it('reads what an older master key has sealed, and seals it again under its name', async () => {
    await using folder = await scratchDir();
    const before = await openVault(`${folder.path}/before`);
    const tar = await tarOf('./Default/Preferences', '{}');
    const { sha256 } = await before.vault.save(owner, { live: null, tar: from(tar) }, signal);
    const withKeys = (...letters: string[]) =>
      openVault(`${folder.path}/${letters.join('')}`, {
        keys: keysOf(...letters),
        objects: before.objects,
      });
    const both = (await withKeys('n', 'k')).vault;
    const alone = (await withKeys('n')).vault;
    await expect(alone.load(owner, sha256)).rejects.toThrow('which MASTER_KEY does not have');
    const older = await both.load(owner, sha256);
    expect(older.isOfOlderKey).toBe(true);
    expect((await all(older.tar)).equals(tar)).toBe(true);
    await both.sealAgain(owner, sha256, signal);
    const again = await alone.load(owner, sha256);
    expect(again.isOfOlderKey).toBe(false);
    expect((await all(again.tar)).equals(tar)).toBe(true);
    await expect(before.vault.load(owner, sha256)).rejects.toThrow('does not have');
  });

  it('lists origins of local storage, and no file that is broken stops a save', async () => {
    await using folder = await scratchDir();
    const { vault } = await openVault(folder.path);
    const tar = packTar();
    const leveldb = 'META:https://shop.example\u0000_https://shop.example\u0000\u0001name';
    tar.entry({ name: './Default/Local Storage/leveldb/000003.log' }, leveldb);
    tar.entry({ name: './Default/Cookies' }, 'no database');
    tar.finalize();
    const stored = await vault.save(
      owner,
      { live: null, tar: from(await all(tar as AsyncIterable<Buffer>)) },
      signal,
    );
    expect(stored.contents).toEqual({ origins: ['https://shop.example'], cookies: [] });
  });

  it('stores nothing of what is no tar, of a tar that breaks off, and of one that is too large', async () => {
    await using folder = await scratchDir();
    const { vault, keys } = await openVault(folder.path);
    async function* breaking(): AsyncGenerator<Uint8Array> {
      yield await tarOf('./a', 'a');
      throw new Error('the browser has gone');
    }
    const saves = [from(randomBytes(10_000)), breaking(), from(Buffer.alloc(2 * MIB))];
    for (const tar of saves)
      await expect(vault.save(owner, { live: null, tar }, signal)).rejects.toThrow();
    expect(await keys()).toEqual([]);
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('empties its folder when it is opened: a killed process may have left something', async () => {
    await using folder = await scratchDir();
    const { vault } = await openVault(folder.path);
    await vault.save(owner, { live: null, tar: from(await tarOf('./a', 'a')) }, signal);
    await using other = await scratchDir();
    await openVault(other.path);
    expect(await readdir(folder.path)).toEqual([]);
  });
});

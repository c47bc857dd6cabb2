import { createHash, randomUUID, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProfileContents } from '#events/profile.ts';
import type { MasterKeys } from '#src/kernel/master-keys.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import { readContents, withLiveState } from './contents.ts';
import { pack, unpack, type Archive } from './packed.ts';
import { ArchiveDamaged } from './read-exactly.ts';
import { seal, unseal } from './sealed.ts';

/** Whose archive it is. */
export type ProfileOwner = { organizationId: string; profileId: string };

/** What has been stored: the object's name, its size, and what it holds by name. */
export type StoredArchive = { sha256: string; bytes: number; contents: ProfileContents };

/**
 * The archives of profiles: compressed, encrypted, and named by the hash of what is encrypted, so
 * that one keeps its name when it is sealed again.
 */
export type ProfileVault = {
  /**
   * Stores an archive; older ones are left as they are. Until it is recorded nothing refers to it.
   * @throws ProfileTooLarge; ObjectStoreUnavailable; whatever the tar throws; the signal's reason
   */
  save(owner: ProfileOwner, archive: Archive, signal: AbortSignal): Promise<StoredArchive>;
  /**
   * Opens an archive; its tar is read as it is pulled.
   * @throws ArchiveDamaged, also if it is not stored; ObjectStoreUnavailable. The tar throws too
   */
  load(owner: ProfileOwner, sha256: string): Promise<LoadedArchive>;
  /**
   * Seals an archive again with the current master key, in its place; a reader of the old bytes may
   * be cut off. @throws as `load` and `save`
   */
  sealAgain(owner: ProfileOwner, sha256: string, signal: AbortSignal): Promise<void>;
  /** Removes an archive that is not recorded; it may be missing. */
  remove(owner: ProfileOwner, sha256: string): Promise<void>;
};

/** `isOfOlderKey`: it was sealed with another master key than the current one. */
export type LoadedArchive = Archive & { isOfOlderKey: boolean };

export type ProfileVaultOptions = {
  objects: Pick<ObjectStore, 'put' | 'get' | 'remove'>;
  masterKeys: MasterKeys;
  /** A folder of its own, which is emptied now: an archive is spooled there, encrypted. */
  folder: string;
  /** The largest profile, uncompressed. */
  bytesMax: number;
};

/** The key's prefix of all archives of a profile. */
export function archivesOf({ organizationId, profileId }: ProfileOwner): string {
  return `profiles/${organizationId}/${profileId}/`;
}

/** Opens the vault; what a killed process has left in the folder is removed. */
export async function openProfileVault(options: ProfileVaultOptions): Promise<ProfileVault> {
  const { objects, masterKeys, folder, bytesMax } = options;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });

  async function read(owner: ProfileOwner, sha256: string, signal?: AbortSignal) {
    const options = signal === undefined ? {} : { signal };
    const found = await objects.get(archivesOf(owner) + sha256, undefined, options);
    if (found === null) throw new ArchiveDamaged('it is not stored any more');
    return found.body;
  }

  /** A hash is known only at the end, and names the object: so the archive is spooled first. */
  async function save(
    owner: ProfileOwner,
    { live, tar }: Archive,
    signal: AbortSignal,
  ): Promise<StoredArchive> {
    const name = join(folder, randomUUID());
    await using reader = readContents(`${name}.d`);
    async function* watched(): AsyncGenerator<Uint8Array> {
      for await (const chunk of tar) {
        signal.throwIfAborted();
        await reader.write(chunk);
        yield chunk;
      }
    }
    try {
      const hash = createHash('sha256');
      const packed = hashed(hash, pack({ live, tar: watched() }, bytesMax));
      const bytes = await spool(name, seal(masterKeys.current, nameOf(owner), packed));
      const sha256 = hash.digest('hex');
      const contents = withLiveState(await reader.end(), live);
      const key = archivesOf(owner) + sha256;
      await objects.put(key, createReadStream(name), { signal, bytes });
      return { sha256, bytes, contents };
    } finally {
      await rm(name, { force: true });
    }
  }
  return {
    save,
    async load(owner, sha256) {
      let isOfOlderKey = false;
      const onOlder = () => {
        isOfOlderKey = true;
      };
      const sealed = await read(owner, sha256);
      // The head is read before it resolves, and the seal before the head.
      const archive = await unpack(unseal(masterKeys, nameOf(owner), sealed, onOlder), bytesMax);
      return { ...archive, isOfOlderKey };
    },
    async sealAgain(owner, sha256, signal) {
      const sealed = await read(owner, sha256, signal);
      const packed = unseal(masterKeys, nameOf(owner), sealed);
      const again = seal(masterKeys.current, nameOf(owner), packed);
      await objects.put(archivesOf(owner) + sha256, again, { signal });
    },
    remove: (owner, sha256) => objects.remove(archivesOf(owner) + sha256),
  };
}

function nameOf({ organizationId, profileId }: ProfileOwner): string {
  return `${organizationId}/${profileId}`;
}

async function* hashed(hash: Hash, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    hash.update(chunk);
    yield chunk;
  }
}

/** Returns the number of bytes. */
async function spool(name: string, source: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0;
  await using file = await open(name, 'wx', 0o600);
  for await (const chunk of source) {
    bytes += chunk.length;
    await file.appendFile(chunk);
  }
  return bytes;
}

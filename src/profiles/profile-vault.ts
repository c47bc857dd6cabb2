import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProfileContents } from '#events/profile.ts';
import type { ObjectStore } from '#src/objects/object-store.ts';
import { readContents, withLiveState } from './contents.ts';
import { pack, unpack, type Archive } from './packed.ts';
import { ArchiveDamaged } from './read-exactly.ts';
import { seal, unseal } from './sealed.ts';

/** Whose archive it is. */
export type ProfileOwner = { organizationId: string; profileId: string };

/** What has been stored: the object's name, its size, and what it holds by name. */
export type StoredArchive = { sha256: string; bytes: number; contents: ProfileContents };

/** The archives of profiles: compressed, encrypted, and named by the hash of what is stored. */
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
  load(owner: ProfileOwner, sha256: string): Promise<Archive>;
  /** Removes an archive that is not recorded; it may be missing. */
  remove(owner: ProfileOwner, sha256: string): Promise<void>;
};

export type ProfileVaultOptions = {
  objects: Pick<ObjectStore, 'put' | 'get' | 'remove'>;
  masterKey: Uint8Array;
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
  const { objects, masterKey, folder, bytesMax } = options;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });

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
      const sealed = seal(masterKey, nameOf(owner), pack({ live, tar: watched() }, bytesMax));
      const { sha256, bytes } = await spool(name, sealed);
      const contents = withLiveState(await reader.end(), live);
      const key = archivesOf(owner) + sha256;
      await objects.put(key, createReadStream(name), { signal });
      return { sha256, bytes, contents };
    } finally {
      await rm(name, { force: true });
    }
  }
  return {
    save,
    async load(owner, sha256) {
      const found = await objects.get(archivesOf(owner) + sha256);
      if (found === null) throw new ArchiveDamaged('it is not stored any more');
      return unpack(unseal(masterKey, nameOf(owner), found.body), bytesMax);
    },
    remove: (owner, sha256) => objects.remove(archivesOf(owner) + sha256),
  };
}

function nameOf({ organizationId, profileId }: ProfileOwner): string {
  return `${organizationId}/${profileId}`;
}

async function spool(
  name: string,
  source: AsyncIterable<Uint8Array>,
): Promise<{ sha256: string; bytes: number }> {
  const hash = createHash('sha256');
  let bytes = 0;
  await using file = await open(name, 'wx', 0o600);
  for await (const chunk of source) {
    hash.update(chunk);
    bytes += chunk.length;
    await file.appendFile(chunk);
  }
  return { sha256: hash.digest('hex'), bytes };
}

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMasterKeys } from '#src/kernel/master-keys.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import { openProfileVault, type ProfileVault } from '#src/features/profiles/profile-vault.ts';

/** Archives of profiles in this process's memory, for as long as the stack is open. */
export async function memoryVault(
  stack: AsyncDisposableStack,
  objects: ObjectStore = createMemoryObjectStore(),
): Promise<{ profileVault: ProfileVault; profileVersions: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'bss-vault-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const masterKeys = createMasterKeys([Buffer.alloc(32, 'k')]);
  const profileVault = await openProfileVault({
    objects,
    masterKeys,
    folder,
    bytesMax: 64 * 1024 ** 2,
  });
  return { profileVault, profileVersions: 3 };
}

/** Of a simulation without profiles. */
export const noVault = {
  profileVault: {
    save: () => Promise.reject(new Error('no archive is stored here')),
    load: () => Promise.reject(new Error('no archive is stored here')),
    remove: () => Promise.resolve(),
    sealAgain: () => Promise.resolve(),
  },
  profileVersions: 1,
};

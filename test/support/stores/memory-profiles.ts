import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMasterKeys } from '#src/kernel/master-keys.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import { openProfileVault } from '#src/features/profiles/profile-vault.ts';
import { openProfiles } from '#src/features/profiles/server/open-profiles.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { OpenProfiles } from '#src/roles/provisioner/profiles.ts';

/** Profiles whose archives are in this process's memory, for as long as the stack is open. */
export async function memoryProfiles(
  stack: AsyncDisposableStack,
  eventStore: EventStore,
  objects: ObjectStore = createMemoryObjectStore(),
): Promise<OpenProfiles> {
  const folder = await mkdtemp(join(tmpdir(), 'bss-vault-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const masterKeys = createMasterKeys([Buffer.alloc(32, 'k')]);
  const vault = await openProfileVault({
    objects,
    masterKeys,
    folder,
    bytesMax: 64 * 1024 ** 2,
  });
  const log = { warn: () => undefined, error: () => undefined };
  return openProfiles({ eventStore, vault, versionsKept: 3, log });
}

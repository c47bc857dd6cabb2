import { describe, expect, it } from 'vitest';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { auditArchive } from '#src/features/archive/audit-archive.ts';
import { recordsFrom, seal, signer } from '#test/support/archive/archive.fixture.ts';

const findSigner = async () => signer.fingerprint;

async function partsWith(firstSequence: number) {
  const files = createMemoryFiles();
  const info = async () => ({ id: 'store-of-a-test', firstSequence, lastSequence: 40 });
  const eventStore = { ...createMemoryEventStore(), info };
  return { files, eventStore, openFiles: async () => files, findSigner };
}

describe('an audit of the archive', () => {
  it('has nothing to say where nothing is archived', async () => {
    const parts = await partsWith(1);
    const none = { agrees: true, segments: 0, records: 0, findings: [] };
    expect(await auditArchive(parts)).toEqual({ ...none, signer: signer.fingerprint });
    const stranger = { ...parts, findSigner: async () => null };
    expect(await auditArchive(stranger)).toEqual({ ...none, signer: null });
  });

  it('agrees with segments as they were sealed, up to where the event store begins', async () => {
    const parts = await partsWith(21);
    await seal(parts.files, recordsFrom(1, 20));
    expect(await auditArchive(parts)).toMatchObject({ agrees: true, records: 20, findings: [] });
  });

  it('finds an end that is missing', async () => {
    const parts = await partsWith(31);
    await seal(parts.files, recordsFrom(1, 20));
    const { agrees, findings } = await auditArchive(parts);
    expect([agrees, findings.length]).toEqual([false, 1]);
  });

  it('fails where the process does not know who signs', async () => {
    const parts = { ...(await partsWith(21)), findSigner: async () => null };
    await seal(parts.files, recordsFrom(1, 20));
    await expect(auditArchive(parts)).rejects.toThrow('does not have the key');
  });
});

import { verifyArchive } from '#src/features/archive/verify/verify.ts';
import { createHeadReader } from '#src/features/archive/head.ts';
import type { ArchiveFiles } from '#src/features/archive/archive-files.ts';
import type { ArchiveReport } from '#src/commands/operator/archive-report.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';

type ArchiveParts = {
  eventStore: EventStore;
  openFiles: () => Promise<ArchiveFiles>;
  findSigner: () => Promise<string | null>;
};

/**
 * Verifies the archived part of the log: hashes, the chain of all lines, signatures, and that it
 * reaches to where the event store begins.
 * @throws Error where something is archived and the process does not know who signs
 */
export async function auditArchive(parts: ArchiveParts): Promise<ArchiveReport> {
  const { firstSequence } = await parts.eventStore.info();
  const files = await parts.openFiles();
  const signer = await parts.findSigner();
  if (signer === null) {
    const isEmpty = (await files.list()).length === 0 && firstSequence <= 1;
    if (isEmpty) return { segments: 0, records: 0, findings: [], agrees: true, signer };
    throw new Error('this process does not have the key that signs the archive');
  }
  const head = await createHeadReader(parts.eventStore)();
  const verdict = await verifyArchive(files, { signer, endSequence: firstSequence - 1, head });
  return { ...verdict, agrees: verdict.findings.length === 0, signer };
}

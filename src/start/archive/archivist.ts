import {
  startArchivist,
  type ArchivistDependencies,
} from '#src/features/archive/archivist/archivist.ts';
import { createJetStreamRawRecords } from '#src/kernel/event-store/jetstream/jetstream-raw-records.ts';
import { createJetStreamTruncation } from '#src/kernel/event-store/jetstream/jetstream-truncation.ts';
import { createJetStreamLeases } from '#src/kernel/messaging/jetstream/jetstream-leases.ts';
import { openArchiveFiles } from './archive-files.ts';
import { archiveKeyPlace, openAuditKey } from '../audit-key.ts';
import type { Infrastructure } from '../infrastructure.ts';
import { readBackInThread } from './read-back-thread.ts';

/** Starts the archivist; null if everything is retained for ever. */
export async function composeArchivist(
  infrastructure: Infrastructure,
): Promise<AsyncDisposable | null> {
  const { retainEndedMs, retainEventsMax, everyMs } = infrastructure.config.archive;
  if (retainEndedMs === null) return null;
  const dependencies = await archivistDependencies(infrastructure);
  const options = { retainEndedMs, retainEventsMax, everyMs, log: infrastructure.log };
  return startArchivist(dependencies, options);
}

export async function archivistDependencies({
  config,
  connection,
  context,
  rawViews,
}: Pick<
  Infrastructure,
  'config' | 'connection' | 'context' | 'rawViews'
>): Promise<ArchivistDependencies> {
  return {
    context,
    records: createJetStreamRawRecords(connection),
    files: await openArchiveFiles(config.archive.place),
    readBack: readBackInThread(config.archive.place),
    signer: await openAuditKey(archiveKeyPlace(config)),
    truncation: createJetStreamTruncation(connection),
    views: rawViews,
    leases: await createJetStreamLeases(connection),
    now: context.now,
  };
}

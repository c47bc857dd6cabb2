import type { ArchiveFiles } from '#src/archive/archive-files.ts';
import { openFolderFiles } from '#src/archive/archive-files.folder.ts';
import { startArchivist, type ArchivistDependencies } from '#src/archivist/archivist.ts';
import type { ArchivePlace } from '#src/config/archive.ts';
import { createJetStreamTruncation } from '#src/event-store/jetstream/jetstream-truncation.ts';
import { createJetStreamRawRecords } from '#src/event-store/jetstream/jetstream-raw-records.ts';
import { createJetStreamLeases } from '#src/messaging/jetstream/jetstream-leases.ts';
import { openAuditKey } from './audit-key.ts';
import type { Infrastructure } from './infrastructure.ts';

/** The archive's files at their place. */
export async function openArchiveFiles(place: ArchivePlace): Promise<ArchiveFiles> {
  if ('folder' in place) return openFolderFiles(place.folder);
  const { prefix, endpoint, ...bucket } = place;
  // Loaded only where it is used: the client of S3 takes a third of a second of a start.
  const { createS3Files } = await import('#src/archive/archive-files.s3.ts');
  return createS3Files({
    ...bucket,
    ...(prefix === '' ? {} : { prefix: `${prefix}/` }),
    ...(endpoint === null ? {} : { endpoint }),
  });
}

/** Starts the archivist; null if everything is retained for ever. */
export async function composeArchivist(
  infrastructure: Infrastructure,
): Promise<AsyncDisposable | null> {
  const { retainEndedMs, everyMs } = infrastructure.config.archive;
  if (retainEndedMs === null) return null;
  return startArchivist(await archivistDependencies(infrastructure), { retainEndedMs, everyMs });
}

export async function archivistDependencies({
  config,
  connection,
  context,
  rawViews,
  log,
}: Pick<
  Infrastructure,
  'config' | 'connection' | 'context' | 'rawViews' | 'log'
>): Promise<ArchivistDependencies> {
  return {
    context,
    records: createJetStreamRawRecords(connection),
    files: await openArchiveFiles(config.archive.place),
    signer: await openAuditKey(config.dataDir),
    truncation: createJetStreamTruncation(connection),
    views: rawViews,
    leases: await createJetStreamLeases(connection),
    now: context.now,
    log,
  };
}

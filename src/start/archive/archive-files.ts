import type { ArchiveFiles } from '#src/features/archive/archive-files.ts';
import { openFolderFiles } from '#src/features/archive/archive-files.folder.ts';
import type { ArchivePlace } from '#src/kernel/config/archive.ts';

/** The archive's files at their place. */
export async function openArchiveFiles(place: ArchivePlace): Promise<ArchiveFiles> {
  if ('folder' in place) return openFolderFiles(place.folder);
  const { prefix, endpoint, ...bucket } = place;
  // Loaded only where it is used: the client of S3 takes a third of a second of a start.
  const { createS3Files } = await import('#src/features/archive/archive-files.s3.ts');
  return createS3Files({
    ...bucket,
    ...(prefix === '' ? {} : { prefix: `${prefix}/` }),
    ...(endpoint === null ? {} : { endpoint }),
  });
}

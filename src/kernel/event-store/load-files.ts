import { fileChanges } from '#events/session/files.ts';
import { filesAfter, type SessionFiles } from '#src/kernel/domain/session/files.ts';
import type { SessionIdentity } from '#src/kernel/domain/session/session.ts';
import type { EventStore } from './event-store.ts';

/**
 * A session's files, by its events: the same in every process, after a restart and after the end.
 * @throws Unavailable; WrittenByNewer
 */
export async function loadFiles(
  eventStore: Pick<EventStore, 'history'>,
  { organizationId, id }: SessionIdentity,
): Promise<SessionFiles> {
  let files: SessionFiles = new Map();
  const session = { kind: 'session', organizationId, id } as const;
  for await (const event of eventStore.history<'session'>(session, { types: fileChanges }))
    files = filesAfter(files, event);
  return files;
}

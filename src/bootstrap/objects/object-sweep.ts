import type { SessionState } from '#events/session.ts';
import { extensionRetention } from '#src/archivist/extension-retention.ts';
import { filesRetention } from '#src/archivist/files-retention.ts';
import { profileRetention } from '#src/archivist/profile-retention.ts';
import { recordingRetention, thumbnailRetention } from '#src/archivist/recording-retention.ts';
import { startObjectSweep, type RetentionRule } from '#src/archivist/sweep-objects.ts';
import { loadState } from '#src/event-store/load-state.ts';
import { createJetStreamLeases } from '#src/messaging/jetstream/jetstream-leases.ts';
import type { Infrastructure } from '../infrastructure.ts';

/** Starts the sweep of the object store, for the role archivist. */
export async function composeObjectSweep(infrastructure: Infrastructure): Promise<AsyncDisposable> {
  const { config, connection, objects, log } = infrastructure;
  return startObjectSweep(
    {
      objects,
      rules: retentionRules(infrastructure),
      leases: await createJetStreamLeases(connection),
    },
    { everyMs: config.objects.sweepEveryMs, log },
  );
}

/** How long the objects of each kind are kept; a part that stores some adds its rule here. */
function retentionRules({ config, context }: Infrastructure): RetentionRule[] {
  async function readSession(organizationId: string, id: string): Promise<SessionState | null> {
    const session = { kind: 'session', organizationId, id } as const;
    return (await loadState<'session'>(context.eventStore, session)).state;
  }
  return [
    filesRetention({ readSession, retainMs: config.files.retainMs, now: context.now }),
    recordingRetention(context, config.recordings.retainMs),
    extensionRetention(context.eventStore, context.now),
    profileRetention(context.eventStore, context.now),
    thumbnailRetention(context, config.files.retainMs),
  ];
}

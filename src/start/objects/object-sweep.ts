import type { SessionState } from '#events/session.ts';
import { extensionRetention } from '#src/features/archive/archivist/extension-retention.ts';
import { filesRetention } from '#src/features/archive/archivist/files-retention.ts';
import { requireOwnObjects } from '#src/features/archive/archivist/bucket-owner.ts';
import { profileRetention } from '#src/features/archive/archivist/profile-retention.ts';
import {
  recordingRetention,
  thumbnailRetention,
} from '#src/features/archive/archivist/recording-retention.ts';
import {
  startObjectSweep,
  type RetentionRule,
  type SweepDependencies,
} from '#src/features/archive/archivist/sweep-objects.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { createJetStreamLeases } from '#src/kernel/messaging/jetstream/jetstream-leases.ts';
import type { Infrastructure } from '../infrastructure.ts';

type Parts = Pick<Infrastructure, 'config' | 'connection' | 'objects' | 'context'>;

/** Starts the sweep of the object store, for the role archivist. */
export async function composeObjectSweep(infrastructure: Infrastructure): Promise<AsyncDisposable> {
  const { config, log } = infrastructure;
  const everyMs = config.objects.sweepEveryMs;
  return startObjectSweep(await sweepDependencies(infrastructure), { everyMs, log });
}

/** What a sweep needs, for the role and for `bss objects sweep`. */
export async function sweepDependencies(parts: Parts): Promise<SweepDependencies> {
  const { config, connection, objects, context } = parts;
  const { eventStore } = context;
  return {
    objects,
    rules: retentionRules(parts),
    leases: await createJetStreamLeases(connection),
    // In NATS events and objects are of one store, and restored together.
    requireOwnObjects: async () => {
      if (config.objects.place !== 'jetstream') await requireOwnObjects({ objects, eventStore });
    },
  };
}

/** How long the objects of each kind are kept; a part that stores some adds its rule here. */
function retentionRules({ config, context }: Parts): RetentionRule[] {
  const { eventStore, now } = context;
  const { replacedKeptMs } = config.objects;
  async function readSession(organizationId: string, id: string): Promise<SessionState | null> {
    const session = { kind: 'session', organizationId, id } as const;
    return (await loadState<'session'>(eventStore, session)).state;
  }
  return [
    filesRetention({ readSession, retainMs: config.files.retainMs, now }),
    recordingRetention(context, config.recordings.retainMs),
    extensionRetention(eventStore, now),
    profileRetention(eventStore, { replacedKeptMs, now }),
    thumbnailRetention(context, config.files.retainMs),
  ];
}

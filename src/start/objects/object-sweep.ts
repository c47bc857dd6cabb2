import { features as allFeatures } from '#src/features/all.ts';
import type { Feature } from '#src/features/feature.ts';
import { requireOwnObjects } from '#src/kernel/objects/sweep/bucket-owner.ts';
import {
  startObjectSweep,
  type SweepDependencies,
} from '#src/kernel/objects/sweep/sweep-objects.ts';
import { createJetStreamLeases } from '#src/kernel/messaging/jetstream/jetstream-leases.ts';
import type { Infrastructure } from '../infrastructure.ts';

type Parts = Pick<Infrastructure, 'config' | 'connection' | 'objects' | 'context'> & {
  features?: readonly Feature[];
};

/** Starts the sweep of the object store, for the role archivist. */
export async function composeObjectSweep(infrastructure: Infrastructure): Promise<AsyncDisposable> {
  const { config, log } = infrastructure;
  const everyMs = config.objects.sweepEveryMs;
  return startObjectSweep(await sweepDependencies(infrastructure), { everyMs, log });
}

/** What a sweep needs, for the role and for `bss objects sweep`. */
export async function sweepDependencies(parts: Parts): Promise<SweepDependencies> {
  const { config, connection, objects, context, features = allFeatures } = parts;
  const { eventStore } = context;
  return {
    objects,
    rules: (await Promise.all(features.flatMap((one) => one.retention?.(parts) ?? []))).flat(),
    leases: await createJetStreamLeases(connection),
    // In NATS events and objects are of one store, and restored together.
    requireOwnObjects: async () => {
      if (config.objects.place !== 'jetstream') await requireOwnObjects({ objects, eventStore });
    },
  };
}

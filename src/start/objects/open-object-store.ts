import type { ObjectsConfig } from '#src/kernel/config/objects.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamObjectStore } from '#src/kernel/objects/jetstream/jetstream-object-store.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';

/** The object store at its place. */
export async function openObjectStore(
  { place }: ObjectsConfig,
  connection: JetStreamConnection,
): Promise<ObjectStore> {
  if (place === 'jetstream') return createJetStreamObjectStore(connection);
  const { prefix, endpoint, ...bucket } = place;
  // Loaded only where it is used: the client of S3 takes a third of a second of a start.
  const { createS3ObjectStore } = await import('#src/kernel/objects/s3/s3-object-store.ts');
  return createS3ObjectStore({
    ...bucket,
    ...(prefix === '' ? {} : { prefix: `${prefix}/` }),
    ...(endpoint === null ? {} : { endpoint }),
  });
}

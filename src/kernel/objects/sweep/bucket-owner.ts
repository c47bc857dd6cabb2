import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';

/** Names the event store that the objects belong to; no kind, so that no rule judges it. */
const MARKER = 'store/event-store';
const MARKER_BYTES_MAX = 1024;

/** The objects belong to another event store: what this one says about them is no evidence. */
export class AnotherEventStore extends Error {
  override readonly name = 'AnotherEventStore';
  constructor(theirs: string, ours: string) {
    super(
      `the bucket belongs to the event store of ${theirs}; this one is of ${ours}: nothing is ` +
        'removed. Check NATS_URL and OBJECT_STORE; if this event store replaces the other, run ' +
        '`bss objects sweep --adopt`',
    );
  }
}

type Stores = { objects: Pick<ObjectStore, 'get' | 'put'>; eventStore: Pick<EventStore, 'info'> };

/**
 * Passes if the objects belong to the event store, which becomes the owner of objects without one.
 * A restored event store has another identity: its operator lets it adopt the objects.
 * @throws AnotherEventStore; Unavailable
 */
export async function requireOwnObjects({ objects, eventStore }: Stores): Promise<void> {
  const [{ id }, owner] = await Promise.all([eventStore.info(), readOwner(objects)]);
  if (owner === null) return adoptObjects({ objects, eventStore });
  if (owner !== id) throw new AnotherEventStore(owner, id);
}

/** Makes this event store the owner of the objects; another one is it no more. */
export async function adoptObjects({ objects, eventStore }: Stores): Promise<void> {
  const { id } = await eventStore.info();
  async function* body() {
    yield Buffer.from(id);
  }
  await objects.put(MARKER, body());
}

async function readOwner(objects: Pick<ObjectStore, 'get'>): Promise<string | null> {
  const found = await objects.get(MARKER, { start: 0, end: MARKER_BYTES_MAX - 1 });
  if (found === null) return null;
  return Buffer.concat(await Array.fromAsync(found.body)).toString();
}

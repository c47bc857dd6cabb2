import { Kvm } from '@nats-io/kv';
import { nanos } from '@nats-io/transport-node';
import { isId, LEASES_BUCKET, LEASES_STREAM } from '#events/subjects.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import {
  requestWithRetry,
  isWrongLastSequence,
} from '#src/kernel/event-store/jetstream/request.ts';
import { LEASE_MS, type Leases } from '../leases.ts';

/** The subjects of a bucket, by the convention of NATS key-value buckets. */
const PREFIX = `$KV.${LEASES_BUCKET}.`;
const ANSWER_MS = 2_000;

/**
 * Leases as keys of a bucket whose entries the server drops `leaseMs` after they were written.
 * While the server is unavailable no lease can be renewed. After an outage as long as a lease, all
 * leases are gone until their holders are back, so code that acts on a lost lease must wait that
 * long after a reconnect.
 * @throws Unavailable('event-log')
 */
export async function createJetStreamLeases(
  connection: JetStreamConnection,
  { leaseMs = LEASE_MS }: { leaseMs?: number } = {},
): Promise<Leases> {
  const { js, jsm, replicas } = connection;
  const bucket = await requestWithRetry(connection, ANSWER_MS, () =>
    new Kvm(js).create(LEASES_BUCKET, { history: 1, ttl: leaseMs, replicas }),
  );
  const { ttl } = await requestWithRetry(connection, ANSWER_MS, () => bucket.status());
  if (ttl !== leaseMs)
    await requestWithRetry(connection, ANSWER_MS, () =>
      jsm.streams.update(LEASES_STREAM, { max_age: nanos(leaseMs) }),
    );
  /** The revision of each lease that was written last here, by its holder. */
  const written = new Map<string, { holder: string; revision: number }>();

  /** Writes the lease if its entry has the revision; 0: if there is none. */
  async function write(key: string, holder: string, revision: number): Promise<boolean> {
    written.delete(key);
    try {
      const next =
        revision === 0
          ? await bucket.create(key, holder)
          : await bucket.update(key, holder, revision);
      written.set(key, { holder, revision: next });
      return true;
    } catch (error) {
      if (!isWrongLastSequence(error)) throw error;
      return false;
    }
  }

  return {
    async renew(serverId) {
      await requestWithRetry(connection, ANSWER_MS, () => bucket.put(keyOf(serverId), ''));
    },

    async acquire(name, holder) {
      const key = keyOf(name);
      return requestWithRetry(connection, ANSWER_MS, async () => {
        // One message: a process that reads its answers too late, because it is short of processor
        // time, renews its leases all the same.
        const known = written.get(key);
        if (known?.holder === holder && (await write(key, holder, known.revision))) return true;
        const entry = await bucket.get(key);
        // A lease without a holder is one that only says that its server lives.
        const isFree = entry === null || entry.operation !== 'PUT';
        const isHeld = !isFree && entry.string() !== '' && entry.string() !== holder;
        // Fails if somebody else has written since.
        return !isHeld && write(key, holder, isFree ? 0 : entry.revision);
      });
    },

    async release(name, holder) {
      // Purged, not deleted: a delete leaves a marker that `held` would count as an entry.
      const filter = PREFIX + keyOf(name);
      written.delete(name);
      await requestWithRetry(connection, ANSWER_MS, async () => {
        if (holder === undefined) return jsm.streams.purge(LEASES_STREAM, { filter });
        const entry = await bucket.get(name);
        if (entry === null || entry.string() !== holder) return;
        // Up to the holder's own entry: another one may acquire the lease meanwhile.
        return jsm.streams.purge(LEASES_STREAM, { filter, seq: entry.revision + 1 });
      });
    },

    async held() {
      // One request to the bucket's leader; the client's own list of keys would create a consumer.
      const query = { subjects_filter: `${PREFIX}>`, deleted_details: false, offset: 0 };
      const { state } = await requestWithRetry(connection, ANSWER_MS, () =>
        jsm.streams.info(LEASES_STREAM, query),
      );
      const subjects = Object.keys(state.subjects ?? {});
      return new Set(subjects.map((subject) => subject.slice(PREFIX.length)));
    },
  };
}

function keyOf(serverId: string): string {
  if (!isId(serverId)) throw new RangeError(`not an id: ${serverId}`);
  return serverId;
}

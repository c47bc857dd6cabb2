import { Kvm } from '@nats-io/kv';
import { nanos } from '@nats-io/transport-node';
import { isId, LEASES_BUCKET, LEASES_STREAM } from '#events/subjects.ts';
import type { JetStreamConnection } from '#src/event-store/jetstream/connection.ts';
import { requestWithRetry, isWrongLastSequence } from '#src/event-store/jetstream/request.ts';
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

  return {
    async renew(serverId) {
      await requestWithRetry(connection, ANSWER_MS, () => bucket.put(keyOf(serverId), ''));
    },

    async acquire(name, holder) {
      const key = keyOf(name);
      return requestWithRetry(connection, ANSWER_MS, async () => {
        const entry = await bucket.get(key);
        // A lease without a holder is one that only says that its server lives.
        const isFree = entry === null || entry.operation !== 'PUT';
        const isHeld = !isFree && entry.string() !== '' && entry.string() !== holder;
        if (isHeld) return false;
        try {
          // Both fail if somebody else has written since.
          if (isFree) await bucket.create(key, holder);
          else await bucket.update(key, holder, entry.revision);
          return true;
        } catch (error) {
          if (!isWrongLastSequence(error)) throw error;
          return false;
        }
      });
    },

    async release(name, holder) {
      // Purged, not deleted: a delete leaves a marker that `held` would count as an entry.
      const filter = PREFIX + keyOf(name);
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

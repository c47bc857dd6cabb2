import { Kvm } from '@nats-io/kv';
import { nanos } from '@nats-io/transport-node';
import { isId } from '#events/subjects.ts';
import type { JetStreamConnection } from '../../event-store/jetstream/connect.ts';
import { ask } from '#src/event-store/jetstream/request.ts';
import { LEASE_MS, type Leases } from '../leases.ts';

const BUCKET = 'leases';
/** The stream and the subjects of a bucket, by the convention of NATS key-value buckets. */
export const LEASES_STREAM = `KV_${BUCKET}`;
const PREFIX = `$KV.${BUCKET}.`;
const ANSWER_MS = 2_000;

/**
 * Leases as keys of a bucket whose entries the server drops `leaseMs` after they were written.
 * While the log is away nobody can renew: after an outage of a lease's length all are gone until
 * their holders are back, so whoever acts on a lost lease waits that long after a reconnect.
 * @throws Unavailable('event-log')
 */
export async function createJetStreamLeases(
  connection: JetStreamConnection,
  { leaseMs = LEASE_MS }: { leaseMs?: number } = {},
): Promise<Leases> {
  const { js, jsm, replicas } = connection;
  const bucket = await ask(connection, ANSWER_MS, () =>
    new Kvm(js).create(BUCKET, { history: 1, ttl: leaseMs, replicas }),
  );
  const { ttl } = await ask(connection, ANSWER_MS, () => bucket.status());
  if (ttl !== leaseMs)
    await ask(connection, ANSWER_MS, () =>
      jsm.streams.update(LEASES_STREAM, { max_age: nanos(leaseMs) }),
    );

  return {
    async renew(serverId) {
      await ask(connection, ANSWER_MS, () => bucket.put(keyOf(serverId), ''));
    },

    async release(serverId) {
      // Purged, not deleted: a delete leaves a marker that `held` would take for an entry.
      const filter = PREFIX + keyOf(serverId);
      await ask(connection, ANSWER_MS, () => jsm.streams.purge(LEASES_STREAM, { filter }));
    },

    async held() {
      // One request to the bucket's leader; the client's own list of keys makes a consumer for it.
      const query = { subjects_filter: `${PREFIX}>`, deleted_details: false, offset: 0 };
      const { state } = await ask(connection, ANSWER_MS, () =>
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

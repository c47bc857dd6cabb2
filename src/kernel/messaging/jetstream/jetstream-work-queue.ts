import { JetStreamApiError, type ConsumerConfig, type JsMsg } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { MalformedEvent, UnknownEvent } from '#events/codec.ts';
import { EVENTS_STREAM, isId, matchesAnyFilter, type AggregateRef } from '#events/subjects.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { doubling } from '#src/kernel/async/retry.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { createBackOff } from '#src/kernel/async/back-off.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { readEvent, type Stored } from '#src/kernel/event-store/jetstream/message.ts';
import type { Delivery, DeliveryBound, OpenWorkQueue, WorkQueue } from '../work-queue.ts';
import { requestWithRetry, REQUEST_MS } from '#src/kernel/event-store/jetstream/request.ts';
import { createPulls } from './pulls.ts';
import { takeRetries } from './redelivery.ts';

export type WorkQueueOptions<Item> = DeliveryBound & {
  stream: string;
  /** Name of the durable consumer: processes that use the same name share the work. */
  name: string;
  subjects: readonly string[];
  /** How long an item is held if its consumer does not respond. */
  leaseMs?: number;
  /** Whether the stream removes acknowledged messages; default: it keeps all. */
  removesAcknowledged?: boolean;
  /**
   * @throws MalformedEvent: the message becomes a dead letter with that reason; UnknownEvent: it is
   * given back until a newer version of the service takes it
   */
  read: (message: Stored, sequence: number) => Item;
  /** What the item is about; null: nothing that this build knows. */
  aggregateOf: (item: Item) => AggregateRef | null;
  /** Called once with the queue's reader: `<stream>/<name>`, and its silence in milliseconds. */
  onOpened?: (reader: string, silenceMs: () => number) => void;
};

/**
 * Handling takes milliseconds. The items of a killed consumer go to the next one this much later.
 */
const LEASE_MS = 5_000;
/**
 * Deliveries of one item; the next one makes it a dead letter. The server has no bound: it would
 * count those of an item that waits for a newer version of the service, too.
 */
const DELIVERIES_MAX = 10;
/**
 * Pause before an item of a newer version is delivered again: 500 ms, doubled by each delivery. In
 * a fleet of old processes that is one delivery in 30 s; a newer process waits no longer for it.
 */
const unknownMs = doubling(500, 30_000);
/**
 * Leases of the first deliveries: an item whose consumers keep dying is delivered ever less often.
 * Where items are given back without a failure (`isBounded: false`) every lease is the first one:
 * the deliveries say nothing about the item there.
 */
const LEASE_FACTORS = [1, 1, 2, 6, 12];
/** Items held at once by all consumers of the name: room for the longest queue there may be. */
const HELD_MAX = 5_000;
const OPEN_MS = 5_000;
const ACK_MS = 5_000;
/** Error code: a consumer of that name has another configuration. */
const CONSUMER_EXISTS = 10_148;

/** What the consumer at the server is made of. */
type ConsumerOptions = Pick<
  WorkQueueOptions<unknown>,
  'stream' | 'name' | 'subjects' | 'leaseMs' | 'isBounded'
>;

/** Work queues over the events of the EVENTS stream. */
export function createJetStreamWorkQueues(
  connection: JetStreamConnection,
  options: Pick<WorkQueueOptions<unknown>, 'leaseMs' | 'onOpened'> = {},
): OpenWorkQueue {
  return (name, subjects, bound) =>
    openWorkQueue(connection, {
      stream: EVENTS_STREAM,
      name,
      subjects,
      ...bound,
      ...options,
      read: readEvent,
      aggregateOf: ({ aggregate }) => aggregate,
    });
}

/**
 * Opens a durable work queue; creates its consumer if it does not exist. Each `next` has one pull
 * of one message open, by the library's consumer. A message that arrives when no caller waits,
 * because its `next` was aborted, returns to the queue at once. The server stores acknowledgements
 * a little later than it confirms them: if it is killed, acknowledged items may be delivered again.
 * The queue lives as long as the connection.
 * @throws Unavailable('event-log'); RangeError for a name that is not a valid id
 */
export async function openWorkQueue<Item>(
  connection: JetStreamConnection,
  options: WorkQueueOptions<Item>,
): Promise<WorkQueue<Item>> {
  const { js, jsm } = connection;
  const { stream, name, isBounded = true } = options;
  await makeConsumer(connection, options);
  const consumer = await requestWithRetry(connection, OPEN_MS, () =>
    js.consumers.get(stream, name),
  );
  const recovery = createRecovery(connection, options);
  const eventStore = createJetStreamEventStore(connection);

  async function pull(openMs: number): Promise<Delivery<Item> | null> {
    try {
      // `bind`: after a reconnect it pulls again without a request for the consumer's info, which a
      // server that is just starting does not answer; the library would ask again 5 s later.
      const message = await consumer.next({ expires: openMs, bind: true });
      recovery.reached();
      return message === null ? null : await read(message);
    } catch (error) {
      await recovery.run(error);
      return null;
    }
  }
  async function read(message: JsMsg): Promise<Delivery<Item> | null> {
    const { streamSequence, deliveryCount } = message.info;
    const item = readOrGiveUp(connection, message, options);
    if (item === null) return null;
    if (isBounded && deliveryCount > DELIVERIES_MAX) {
      const aggregate = options.aggregateOf(item.value);
      if (aggregate === null || (await isStored(eventStore, aggregate)))
        message.term(`delivered ${DELIVERIES_MAX} times`);
      else message.nak(unknownMs(deliveryCount));
      return null;
    }
    const remove = () => removeAcknowledged(connection, options, message.subject, streamSequence);
    return deliveryOf(connection, message, item.value, deliveryCount, remove);
  }
  const pulls = createPulls<Delivery<Item>>({
    pull,
    canPull: () => connection.isConnected(),
    putBack: (delivery) => delivery.retryAfter(0),
    trouble: () => (connection.isConnected() ? recovery.objection() : new Error('not connected')),
  });
  options.onOpened?.(`${stream}/${name}`, pulls.silenceMs);
  connection.onReconnect(() => {
    recovery.reached();
    pulls.top();
  });
  // A retry counts as the last delivery: if the handler fails, it gives its reason instead of
  // asking for another delivery.
  takeRetries(connection, {
    ...options,
    deliveries: DELIVERIES_MAX,
    give: (delivery) => pulls.give(delivery),
    remove: (subject, sequence) => removeAcknowledged(connection, options, subject, sequence),
  });

  return {
    next: (waitMs, signal) => pulls.wait(waitMs, signal),
    async pending() {
      const info = await requestWithRetry(connection, REQUEST_MS, () =>
        jsm.consumers.info(stream, name),
      );
      return info.num_pending;
    },
  };
}

/**
 * Creates the consumer again after a failover, a server start or a deletion by somebody else, for
 * as long as that takes and whatever the server answers; attempts are at most 5 s apart. A second
 * error in a row that is not an outage is reported.
 */
function createRecovery(connection: JetStreamConnection, options: ConsumerOptions) {
  const { stream, name } = options;
  const backOff = createBackOff();
  let objection: unknown;
  let failures = 0;
  let running: Promise<void> | null = null;

  function note(cause: unknown): void {
    objection = cause;
    failures += 1;
    if (failures > 1 && !(cause instanceof Unavailable))
      connection.report(cause, `work queue ${name} of stream ${stream} is unavailable; retrying`);
  }
  async function recover(): Promise<void> {
    while (!connection.nc.isClosed()) {
      await sleep(backOff.nextMs());
      try {
        await makeConsumer(connection, options);
        break;
      } catch (error) {
        note(error);
      }
    }
    objection = undefined;
  }
  return {
    /** The server's error, until a request succeeds again. */
    objection: () => objection as Error | undefined,
    /** Resolves once the consumer exists, or the connection is closed for good. */
    run(cause: unknown): Promise<void> {
      if (running === null) {
        note(cause);
        running = recover().finally(() => (running = null));
      }
      return running;
    },
    /** A request succeeded, or the connection is to another server by now. */
    reached(): void {
      objection = undefined;
      failures = 0;
      backOff.reset();
    },
  };
}

async function makeConsumer(
  connection: JetStreamConnection,
  { stream, name, subjects, leaseMs = LEASE_MS, isBounded = true }: ConsumerOptions,
): Promise<void> {
  if (!isId(name)) throw new RangeError(`invalid name of a work queue: ${name}`);
  const { consumers } = connection.jsm;
  const changeable = {
    filter_subjects: [...subjects],
    ack_wait: nanos(leaseMs),
    // Empty and not absent: an update keeps the fields that it does not have.
    backoff: isBounded ? LEASE_FACTORS.map((factor) => nanos(factor * leaseMs)) : [],
    max_deliver: -1,
    max_ack_pending: HELD_MAX,
  };
  const fixed = { durable_name: name, ack_policy: 'explicit', deliver_policy: 'all' } as const;
  await requestWithRetry(connection, OPEN_MS, async () => {
    try {
      await consumers.add(stream, { ...fixed, ...changeable });
    } catch (error) {
      if (!(error instanceof JetStreamApiError) || error.code !== CONSUMER_EXISTS) throw error;
      // Another version of the service created it: it keeps its position and gets this
      // configuration. Subjects that only a newer version wants are kept: their events wait.
      const { config } = await consumers.info(stream, name);
      const filter_subjects = allOf(subjectsIn(config), subjects);
      await consumers.update(stream, name, { ...changeable, filter_subjects });
    }
  });
}

function subjectsIn({ filter_subject: one, filter_subjects: some = [] }: ConsumerConfig) {
  return one === undefined || one === '' ? some : [one];
}

/** Both lists; a subject that another one covers is left out, as the server wants it. */
function allOf(held: readonly string[], wanted: readonly string[]): string[] {
  const all = [...new Set([...wanted, ...held])];
  return all.filter(
    (subject) => !all.some((other) => other !== subject && matchesAnyFilter([other], subject)),
  );
}

/**
 * The item in a message; null if it cannot be decoded. Then it has become a dead letter, or is
 * delivered again later: an item of a newer version is never given up.
 */
function readOrGiveUp<Item>(
  connection: JetStreamConnection,
  message: JsMsg,
  { stream, name, read }: WorkQueueOptions<Item>,
): { value: Item } | null {
  const { streamSequence, deliveryCount } = message.info;
  try {
    return { value: read(message, streamSequence) };
  } catch (error) {
    if (!(error instanceof MalformedEvent)) throw error;
    if (!(error instanceof UnknownEvent)) message.term(oneLine(error.message));
    else {
      message.nak(unknownMs(deliveryCount));
      if (deliveryCount === 1)
        connection.report(
          error,
          `work queue ${name} of stream ${stream}: a newer process is needed`,
        );
    }
    return null;
  }
}

/**
 * Whether this build can decide about the aggregate. False: a newer version of the service wrote
 * its last event, or its history cannot be read now. The item may have been delivered often for
 * that reason.
 */
async function isStored(eventStore: EventStore, aggregate: AggregateRef): Promise<boolean> {
  try {
    await loadState(eventStore, aggregate, { fromLeader: true });
    return true;
  } catch (error) {
    if (error instanceof Unavailable) return false;
    return true;
  }
}

function deliveryOf<Item>(
  connection: JetStreamConnection,
  message: JsMsg,
  item: Item,
  deliveries: number,
  remove: () => Promise<void>,
): Delivery<Item> {
  return {
    item,
    deliveries,
    async ack() {
      // Not `ackAck`, which does nothing when it is called again after an answer was lost.
      const { reply } = message as JsMsg & { reply: string };
      const confirm = () => connection.nc.request(reply, '+ACK', { timeout: REQUEST_MS });
      await requestWithRetry(connection, ACK_MS, confirm);
      await remove();
    },
    retryAfter: (delayMs) => message.nak(delayMs),
    extendLease: () => message.working(),
    deadLetter: (reason) => message.term(oneLine(reason)),
  };
}

/**
 * Removes an acknowledged message, and older ones of its subject. This happens after the
 * acknowledgement, because the server treats the removal of a held message as a failure and would
 * list it as a dead letter. If the process or the server stops in between, the message stays until
 * the next one of its subject is removed: some 200 bytes that are never delivered again, at most
 * as many as the process was handling.
 */
async function removeAcknowledged(
  connection: JetStreamConnection,
  {
    stream,
    removesAcknowledged = false,
  }: Pick<WorkQueueOptions<unknown>, 'stream' | 'removesAcknowledged'>,
  subject: string,
  sequence: number,
): Promise<void> {
  if (!removesAcknowledged) return;
  const upTo = { filter: subject, seq: sequence + 1 };
  const remove = () => connection.jsm.streams.purge(stream, upTo);
  await requestWithRetry(connection, REQUEST_MS, remove).catch(() => undefined);
}

/**
 * The reason becomes part of the server's advisory; the advisories are the list of dead letters.
 */
function oneLine(reason: string): string {
  return reason.replaceAll(/\s+/g, ' ').slice(0, 500);
}

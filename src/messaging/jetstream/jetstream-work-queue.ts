import { setTimeout as delay } from 'node:timers/promises';
import { JetStreamApiError } from '@nats-io/jetstream';
import { nanos, type Msg, type Subscription } from '@nats-io/transport-node';
import { MalformedEvent } from '#events/codec.ts';
import { isId } from '#events/subjects.ts';
import { Unavailable } from '#src/errors.ts';
import { createBackOff } from '#src/async/back-off.ts';
import type { JetStreamConnection } from '../../event-store/jetstream/connect.ts';
import type { Delivery, Inbox } from '../work-queue.ts';
import { ask, REQUEST_MS } from '#src/event-store/jetstream/request.ts';
import { createPulls } from './pulls.ts';
import { readReply } from '../../event-store/jetstream/jetstream-reply.ts';
import { takeRetries, type Readable } from './redelivery.ts';

export type InboxOptions<Item> = {
  stream: string;
  /** Name of the durable consumer: those who use the same one share the work. */
  name: string;
  subjects: readonly string[];
  /** How long an item is held without a word from its consumer. */
  leaseMs?: number;
  /** Whether the stream is to keep nothing of what is done; default: it keeps all. */
  removesAcknowledged?: boolean;
  /** @throws MalformedEvent: the message is parked with that reason and passed over. */
  read: (message: Readable, sequence: number) => Item;
};

/**
 * Handling takes milliseconds; what a killed consumer held comes to the next one this much later.
 */
const LEASE_MS = 5_000;
/** Deliveries of one item; after the last it is parked. */
const DELIVERIES_MAX = 10;
/**
 * Leases of the first deliveries: an item whose consumers keep dying comes back ever more slowly.
 */
const LEASE_FACTORS = [1, 1, 2, 6, 12];
/** Items held at once, by all consumers of the name: room for the longest queue there may be. */
const HELD_MAX = 5_000;
const OPEN_MS = 5_000;
const ACK_MS = 5_000;
/** The server's code for a consumer of that name with another configuration. */
const CONSUMER_EXISTS = 10_148;

/**
 * Opens a durable work queue; makes its consumer where it is missing. Each `next` has one pull of
 * one message open, sent at once. A message that comes while nobody waits, because its `next` was
 * aborted, goes back to the queue at once. The server writes acknowledgements down a little later
 * than it confirms them: a kill of it may bring acknowledged items again. The inbox lives as long
 * as the connection.
 * @throws Unavailable('event-log'); RangeError for a name that is no id
 */
export async function openInbox<Item>(
  connection: JetStreamConnection,
  options: InboxOptions<Item>,
): Promise<Inbox<Item>> {
  const { nc, jsm } = connection;
  const { stream, name } = options;
  await makeConsumer(connection, options);

  let answers = listen();
  const pulls = createPulls<Delivery<Item>>({
    send(openMs) {
      const bound = openMs > 0 ? { expires: nanos(openMs) } : { no_wait: true };
      const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`;
      nc.publish(subject, JSON.stringify({ batch: 1, ...bound }), {
        reply: answers.getSubject(),
      });
    },
    canSend: () => connection.isConnected(),
    trouble: () => (connection.isConnected() ? recovery.objection() : new Error('not connected')),
  });

  function listen(): Subscription {
    return nc.subscribe(connection.newInbox(), { callback: onMessage });
  }

  function onMessage(error: Error | null, message: Msg) {
    if (error !== null) return recovery.begin(error);
    pulls.answered();
    // A delivery keeps its own subject; what comes under ours is the server's word on a pull.
    if (message.subject === answers.getSubject()) return onStatus(message);
    recovery.reached();
    const { sequence, deliveries } = readReply(message.reply ?? '');
    const item = readOrPark(message, sequence, options.read);
    if (item === null) return pulls.top();
    const remove = () => removeAcknowledged(connection, options, message.subject, sequence);
    if (!pulls.give(deliveryOf(connection, message, item.value, deliveries, remove)))
      message.respond('-NAK');
  }

  function onStatus({ headers }: Msg) {
    const code = headers?.code ?? 0;
    // 408: its time is over; 404: it was not to wait.
    if (code !== 408 && code !== 404)
      return recovery.begin(new Error(`${code} ${headers?.description ?? ''}`));
    recovery.reached();
    pulls.expire();
    pulls.top();
  }

  const recovery = createRecovery(connection, options, () => {
    // A subscription that the server refused for a moment has ended; no reconnect brings it back.
    if (answers.isClosed()) answers = listen();
    pulls.restart();
  });
  connection.onReconnect(() => {
    recovery.reached();
    pulls.restart();
  });
  // As the last delivery: whoever cannot handle it says why, and does not ask for one more.
  takeRetries(connection, {
    ...options,
    deliveries: DELIVERIES_MAX,
    give: (delivery) => pulls.give(delivery),
    remove: (subject, sequence) => removeAcknowledged(connection, options, subject, sequence),
  });

  return {
    next: (waitMs, signal) => pulls.wait(waitMs, signal),
    async pending() {
      const info = await ask(connection, REQUEST_MS, () => jsm.consumers.info(stream, name));
      return info.num_pending;
    },
  };
}

/**
 * After a failover, a start of the server, or where somebody deleted the consumer: makes it anew,
 * for as long as that takes and whatever the server answers, at most 5 s apart. What is more than
 * one objection in a row, and no outage, is reported.
 */
function createRecovery(
  connection: JetStreamConnection,
  options: InboxOptions<unknown>,
  onRecovered: () => void,
) {
  const { stream, name } = options;
  const backOff = createBackOff();
  let objection: unknown;
  let failures = 0;
  let isRunning = false;

  function note(cause: unknown): void {
    objection = cause;
    failures += 1;
    if (failures > 1 && !(cause instanceof Unavailable))
      connection.report(cause, `the work queue ${name} of ${stream} is not served; trying again`);
  }
  async function run(): Promise<void> {
    isRunning = true;
    while (isRunning && !connection.nc.isClosed()) {
      await delay(backOff.nextMs());
      try {
        await makeConsumer(connection, options);
        isRunning = false;
      } catch (error) {
        note(error);
      }
    }
    objection = undefined;
    onRecovered();
  }
  return {
    /** What the server objected to, until it answers again. */
    objection: () => objection as Error | undefined,
    begin(cause: Error): void {
      if (isRunning || connection.nc.isClosed()) return;
      note(cause);
      void run();
    },
    /** The server has answered rightly, or is another one by now. */
    reached(): void {
      objection = undefined;
      failures = 0;
      backOff.reset();
    },
  };
}

async function makeConsumer(
  connection: JetStreamConnection,
  { stream, name, subjects, leaseMs = LEASE_MS }: InboxOptions<unknown>,
): Promise<void> {
  if (!isId(name)) throw new RangeError(`not a name of an inbox: ${name}`);
  const { consumers } = connection.jsm;
  const changeable = {
    filter_subjects: [...subjects],
    ack_wait: nanos(leaseMs),
    backoff: LEASE_FACTORS.map((factor) => nanos(factor * leaseMs)),
    max_deliver: DELIVERIES_MAX,
    max_ack_pending: HELD_MAX,
  };
  const fixed = { durable_name: name, ack_policy: 'explicit', deliver_policy: 'all' } as const;
  await ask(connection, OPEN_MS, async () => {
    try {
      await consumers.add(stream, { ...fixed, ...changeable });
    } catch (error) {
      if (!(error instanceof JetStreamApiError) || error.code !== CONSUMER_EXISTS) throw error;
      // Another version of the service made it: it goes on from where it stands, as it is now.
      await consumers.update(stream, name, changeable);
    }
  });
}

/** The item in a message; null where it cannot be read, and then it is parked. */
function readOrPark<Item>(
  message: Msg,
  sequence: number,
  read: InboxOptions<Item>['read'],
): { value: Item } | null {
  try {
    return { value: read(message, sequence) };
  } catch (error) {
    if (!(error instanceof MalformedEvent)) throw error;
    park(message, error.message);
    return null;
  }
}

function deliveryOf<Item>(
  connection: JetStreamConnection,
  message: Msg,
  item: Item,
  deliveries: number,
  remove: () => Promise<void>,
): Delivery<Item> {
  return {
    item,
    deliveries,
    async ack() {
      const { nc } = connection;
      const confirm = () => nc.request(message.reply ?? '', '+ACK', { timeout: REQUEST_MS });
      await ask(connection, ACK_MS, confirm);
      await remove();
    },
    retryAfter(delayMs) {
      message.respond(`-NAK ${JSON.stringify({ delay: nanos(delayMs) })}`);
    },
    extendLease() {
      message.respond('+WPI');
    },
    park(reason) {
      park(message, reason);
    },
  };
}

/**
 * Removes an acknowledged message, and older ones of its subject. After the acknowledgement, for
 * the server takes the removal of one that is still held for a failure, and would list it as
 * parked. Where the process ends between the two, or the server goes away, the message stays until
 * the next one of its subject is removed: some 200 bytes that are never delivered again, at most
 * one for each end of a process, which handles one at a time.
 */
async function removeAcknowledged(
  connection: JetStreamConnection,
  { stream, removesAcknowledged = false }: InboxOptions<unknown>,
  subject: string,
  sequence: number,
): Promise<void> {
  if (!removesAcknowledged) return;
  const upTo = { filter: subject, seq: sequence + 1 };
  const remove = () => connection.jsm.streams.purge(stream, upTo);
  await ask(connection, REQUEST_MS, remove).catch(() => undefined);
}

/** The reason becomes part of the server's advisory, which is the index of what is parked. */
function park(message: Msg, reason: string): void {
  message.respond(`+TERM ${reason.replaceAll(/\s+/g, ' ').slice(0, 500)}`);
}

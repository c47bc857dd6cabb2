import { NoRespondersError, RequestError, TimeoutError, type Msg } from '@nats-io/transport-node';
import { retrySubject } from '#events/subjects.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { keepTrying } from '#src/kernel/async/back-off.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import type { Delivery } from '../work-queue.ts';
import type { Stored } from '#src/kernel/event-store/jetstream/message.ts';
import { requestWithRetry } from '#src/kernel/event-store/jetstream/request.ts';
import type { Redelivered } from '../dead-letters.ts';

/**
 * How long the requester waits: until a consumer takes the item, and then until it has handled it.
 */
const ANSWER_MS = 30_000;
/** How long an item waits for a free consumer; one that launches a browser may be busy. */
const TAKEN_MS = 10_000;
const POLL_MS = 25;
const READ_MS = 2_000;

/**
 * The server never delivers an item again after a consumer gave it up. So this asks one of the
 * queue's running consumers to handle it, and returns the result. If the request or its answer is
 * lost, the item stays a dead letter.
 * @returns whether the item was handled, or why not
 */
export async function redeliver(
  { nc }: JetStreamConnection,
  { stream, by, sequence }: { stream: string; by: string; sequence: number },
): Promise<Redelivered> {
  try {
    const subject = retrySubject(stream, by);
    const reply = await nc.request(subject, JSON.stringify({ sequence }), { timeout: ANSWER_MS });
    return reply.json<Redelivered>();
  } catch (error) {
    if (hasNoConsumer(error)) return fails('no running process consumes this work queue');
    if (error instanceof TimeoutError)
      return fails(`the consumer of the work queue did not answer within ${ANSWER_MS / 1000} s`);
    throw error;
  }
}

function hasNoConsumer(error: unknown): boolean {
  if (error instanceof NoRespondersError) return true;
  return error instanceof RequestError && error.isNoResponders();
}

/** The work queue that accepts retries. */
export type RetriedQueue<Item> = {
  stream: string;
  name: string;
  read: (message: Stored, sequence: number) => Item;
  /** The number of deliveries that a retried item reports. */
  deliveries: number;
  /** Gives the item to a waiting caller of `next`; false if none waits. */
  give: (delivery: Delivery<Item>) => boolean;
  /** Called for each item that was handled. */
  remove: (subject: string, sequence: number) => Promise<void>;
};

/**
 * Accepts operators' requests for a queue; each request goes to one of the queue's consumers. Lives
 * as long as the connection.
 */
export function takeRetries<Item>(
  connection: JetStreamConnection,
  { stream, name, read, deliveries, give, remove }: RetriedQueue<Item>,
): void {
  const { nc, jsm } = connection;

  async function retry(request: Msg): Promise<void> {
    const { sequence } = request.json<{ sequence: number }>();
    const query = { seq: sequence };
    const stored = await requestWithRetry(connection, READ_MS, () =>
      jsm.streams.getMessage(stream, query),
    );
    if (stored === null)
      return answer(request, fails(`the event no longer exists in stream ${stream}`));
    const { subject, data, header: headers, time } = stored;
    const item = read({ subject, data, headers, time, json: () => stored.json() }, sequence);
    const delivery = deliveryOf(request, item, deliveries, () => remove(subject, sequence));
    const deadline = performance.now() + TAKEN_MS;
    while (!give(delivery)) {
      if (performance.now() > deadline || nc.isClosed())
        return answer(request, fails('all consumers of this work queue are busy'));
      await sleep(POLL_MS);
    }
  }
  async function takeAll(wentWell: () => void): Promise<void> {
    for await (const request of nc.subscribe(retrySubject(stream, name), { queue: name })) {
      wentWell();
      await retry(request).catch((failure: unknown) => answer(request, fails(String(failure))));
    }
  }
  const closed = new AbortController();
  void nc.closed().then(() => closed.abort());
  void keepTrying(closed.signal, takeAll, (error) =>
    connection.report(error, `receiving retry requests for work queue ${name} failed; retrying`),
  );
}

/** A delivery whose result is sent to the requester; the server knows nothing of this delivery. */
function deliveryOf<Item>(
  request: Msg,
  item: Item,
  deliveries: number,
  remove: () => Promise<void>,
): Delivery<Item> {
  return {
    item,
    deliveries,
    isRetry: true,
    async ack() {
      await remove();
      answer(request, { outcome: 'mended' });
    },
    retryAfter() {
      answer(
        request,
        fails('handling failed and may succeed later; the process’s log has the cause'),
      );
    },
    extendLease() {},
    deadLetter(reason) {
      answer(request, fails(reason));
    },
  };
}

function fails(reason: string): Redelivered {
  return { outcome: 'fails', reason };
}

function answer(request: Msg, redelivered: Redelivered): void {
  request.respond(JSON.stringify(redelivered));
}

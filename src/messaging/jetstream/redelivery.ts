import { setTimeout as pause } from 'node:timers/promises';
import { NoRespondersError, RequestError, TimeoutError, type Msg } from '@nats-io/transport-node';
import { retrySubject } from '#events/subjects.ts';
import { keepTrying } from '#src/async/back-off.ts';
import type { JetStreamConnection } from '../../event-store/jetstream/connect.ts';
import type { Delivery } from '../work-queue.ts';
import { ask } from '#src/event-store/jetstream/request.ts';
import type { Redelivered } from '../dead-letters.ts';

/** What of a message tells the item in it. */
export type Readable = Pick<Msg, 'subject' | 'data' | 'headers' | 'json'>;

/** How long whoever asked waits: the item is waited for, and then handled. */
const ANSWER_MS = 30_000;
/** How long an item waits for one who takes it; one that launches a browser may be busy. */
const TAKEN_MS = 10_000;
const POLL_MS = 25;
const READ_MS = 2_000;

/**
 * The server never delivers an item again that it was told to give up. So an operator asks one of
 * those who take from the queue, and is told how it went; whatever is lost on the way, the item is
 * parked as before.
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
    if (isNobodyThere(error)) return fails('nobody who runs takes from this work queue');
    if (error instanceof TimeoutError)
      return fails(`whoever takes from it said nothing for ${ANSWER_MS / 1000} s`);
    throw error;
  }
}

function isNobodyThere(error: unknown): boolean {
  if (error instanceof NoRespondersError) return true;
  return error instanceof RequestError && error.isNoResponders();
}

/** The work queue that retries are for. */
export type RetriedQueue<Item> = {
  stream: string;
  name: string;
  read: (message: Readable, sequence: number) => Item;
  /** How many deliveries a retried item is said to have had. */
  deliveries: number;
  /** Hands the item to one who waits; false where nobody does. */
  give: (delivery: Delivery<Item>) => boolean;
  /** Called for each item that was handled. */
  remove: (subject: string, sequence: number) => Promise<void>;
};

/**
 * Takes operators' requests for a queue, one of all who take from it each. Lives as long as the
 * connection.
 */
export function takeRetries<Item>(
  connection: JetStreamConnection,
  { stream, name, read, deliveries, give, remove }: RetriedQueue<Item>,
): void {
  const { nc, jsm } = connection;

  async function retry(request: Msg): Promise<void> {
    const { sequence } = request.json<{ sequence: number }>();
    const query = { seq: sequence };
    const stored = await ask(connection, READ_MS, () => jsm.streams.getMessage(stream, query));
    if (stored === null) return answer(request, fails(`${stream} does not hold it any more`));
    const { subject, data, header: headers } = stored;
    const item = read({ subject, data, headers, json: () => stored.json() }, sequence);
    const delivery = deliveryOf(request, item, deliveries, () => remove(subject, sequence));
    const deadline = performance.now() + TAKEN_MS;
    while (!give(delivery)) {
      if (performance.now() > deadline || nc.isClosed())
        return answer(request, fails('all who take from this work queue are busy'));
      await pause(POLL_MS);
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
    connection.report(error, `retries for the work queue ${name} are not heard; trying again`),
  );
}

/** Whoever handles it tells whoever asked; the server knows nothing of this delivery. */
function deliveryOf<Item>(
  request: Msg,
  item: Item,
  deliveries: number,
  remove: () => Promise<void>,
): Delivery<Item> {
  return {
    item,
    deliveries,
    async ack() {
      await remove();
      answer(request, { outcome: 'mended' });
    },
    retryAfter() {
      answer(request, fails('it could not be done now; the service’s log says why'));
    },
    extendLease() {},
    park(reason) {
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

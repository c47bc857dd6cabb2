import type { ConsumerConfig } from '@nats-io/jetstream';
import { nanos, nuid, TimeoutError, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { EVENTS_STREAM } from '#events/subjects.ts';
import { createNotifier } from '#src/kernel/async/notifier.ts';
import type { JetStreamConnection } from './connection.ts';
import { readReply, type DeliveryFacts } from './jetstream-reply.ts';

/** A message as received, with what its delivery says. */
export type Arrival = { message: Msg } & DeliveryFacts;

export type ReaderOptions = {
  after: number;
  subjects: readonly string[];
  signal: AbortSignal;
  /** The limit that callers will pass to `take`; more than 500 makes larger pulls. */
  batchMax: number;
  /** Called at each heartbeat: the server sends one in 2 s if no message arrives. */
  onHeartbeat?: () => void;
};

/** One pass over the stream, in order and without gap, until it is lost. */
export type Reader = AsyncDisposable & {
  /** The server's count of the matching messages when the reader was opened. */
  readonly pendingAtStart: number;
  /**
   * The messages received so far, at least one and at most `max`; none once the signal has aborted.
   * @throws ReaderLost after all messages received before the loss were taken
   */
  take(max: number): Promise<Arrival[]>;
};

/** This pass is over; the caller opens another one after the last message taken. */
export class ReaderLost extends Error {
  override readonly name = 'ReaderLost';
}

/**
 * Messages of one pull, at least. The next pull is sent when half of it is taken, so at most 1.5 ×
 * this wait in memory.
 */
const PULL_MESSAGES_MIN = 1_000;
const PULL_MS = 30_000;
const HEARTBEAT_MS = 2_000;
const SILENCE_MS = 5_000;
/**
 * Requests for a consumer, of a second each: the server counts what the filter matches, 1 us for
 * each subject.
 */
const ATTEMPTS = 5;
/** The server deletes a consumer that has not been pulled from for this long. */
const INACTIVE_MS = 60_000;

/**
 * Opens an ephemeral consumer of the stream and pulls from it, one pull at a time.
 *
 * - reading: a pull is open, or the queue is too full for one.
 * - lost: the server reported an error, was silent too long, skipped a message, or the connection
 *   was made anew. The messages queued can still be taken; then `take` throws and the caller opens
 *   another reader.
 */
export async function openReader(
  connection: JetStreamConnection,
  { after, subjects, signal, batchMax, onHeartbeat }: ReaderOptions,
): Promise<Reader> {
  const { nc } = connection;
  const consumer = await addConsumer(connection, { after, subjects, signal });

  const pullMessages = Math.max(PULL_MESSAGES_MIN, 2 * batchMax);
  const queue: Arrival[] = [];
  const inbox = connection.newInbox();
  let asked = 0;
  let heardAt = performance.now();
  let consumerSequence = 0;
  let lost: ReaderLost | null = null;
  const notifier = createNotifier();

  function lose(reason: string) {
    lost ??= new ReaderLost(reason);
    notifier.notify();
  }
  function pull() {
    if (lost !== null || asked > 0 || queue.length > pullMessages / 2) return;
    asked = pullMessages;
    heardAt = performance.now();
    sendPull(nc, consumer, pullMessages, inbox);
  }
  function onMessage(error: Error | null, message: Msg) {
    heardAt = performance.now();
    if (error !== null) return lose(error.message);
    // A delivery has its own subject; messages on our inbox are the server's status of the pull.
    if (message.subject === inbox) return onStatus(message.headers?.code ?? 0, message);
    const facts = readReply(message.reply ?? '');
    if (lost !== null) return;
    if (facts.consumerSequence !== consumerSequence + 1) return lose('a message is missing');
    consumerSequence = facts.consumerSequence;
    asked -= 1;
    queue.push({ message, ...facts });
    notifier.notify();
    pull();
  }
  function onStatus(code: number, message: Msg) {
    if (code === 100) return onHeartbeat?.();
    // 408: the pull has expired; all of its messages have arrived before.
    if (code !== 408) return lose(`${code} ${message.headers?.description ?? ''}`);
    asked = 0;
    pull();
  }

  const subscription = nc.subscribe(inbox, { callback: onMessage });
  const forget = connection.onReconnect(() => lose('reconnected'));
  const silentMs = () => (asked > 0 ? performance.now() - heardAt : 0);
  const watch = watchSilence(silentMs, () => lose('silence'));
  pull();

  return {
    pendingAtStart: consumer.pending,
    async take(max) {
      while (queue.length === 0 && !signal.aborted) {
        if (lost !== null) throw lost;
        await notifier.wait(signal);
      }
      await rush(queue, max);
      if (signal.aborted) return [];
      const taken = queue.splice(0, max);
      pull();
      return taken;
    },
    async [Symbol.asyncDispose]() {
      watch[Symbol.dispose]();
      forget();
      subscription.unsubscribe();
      deleteConsumer(connection, consumer);
    },
  };
}

/** Calls back once the silence is too long; looks again only when it can be. */
function watchSilence(silentMs: () => number, onSilent: () => void): Disposable {
  let timer = setTimeout(look, SILENCE_MS);
  function look(): void {
    const leftMs = SILENCE_MS - silentMs();
    if (leftMs <= 0) onSilent();
    else timer = setTimeout(look, Math.ceil(leftMs));
  }
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}

/** `pending`: how many messages it will deliver of those that were stored when it was made. */
type Consumer = { name: string; pending: number };

function sendPull(nc: NatsConnection, { name }: Consumer, messages: number, reply: string): void {
  const pull = { batch: messages, expires: nanos(PULL_MS), idle_heartbeat: nanos(HEARTBEAT_MS) };
  const subject = `$JS.API.CONSUMER.MSG.NEXT.${EVENTS_STREAM}.${name}`;
  nc.publish(subject, JSON.stringify(pull), { reply });
}

/** Not awaited: if it fails, the server deletes the consumer a minute later. */
function deleteConsumer(connection: JetStreamConnection, { name }: Consumer): void {
  if (connection.isConnected())
    connection.jsm.consumers.delete(EVENTS_STREAM, name).catch(() => {});
}

async function addConsumer(
  connection: JetStreamConnection,
  { after, subjects, signal }: Pick<ReaderOptions, 'after' | 'subjects' | 'signal'>,
): Promise<Consumer> {
  const name = `follow_${nuid.next()}`;
  const config: Partial<ConsumerConfig> = {
    name,
    ack_policy: 'none',
    deliver_policy: 'by_start_sequence',
    opt_start_seq: after + 1,
    mem_storage: true,
    num_replicas: 1,
    inactive_threshold: nanos(INACTIVE_MS),
    ...(isServerFilter(subjects) ? { filter_subjects: [...subjects] } : {}),
  };
  for (let attempt = 1; ; attempt += 1)
    try {
      const added = connection.jsm.consumers.add(EVENTS_STREAM, config);
      const { num_pending: pending } = await connection.whileConnected(added);
      return { name, pending };
    } catch (error) {
      // The server may be counting. The next request of that name gets the same consumer.
      const isLast = attempt === ATTEMPTS || signal.aborted;
      if (!(error instanceof TimeoutError) || isLast) throw error;
    }
}

/**
 * Whether the server delivers only what the subjects match. Otherwise it delivers all, and the
 * reader selects: when a consumer is made, the server counts the messages that its filter matches,
 * about 1 us for each of their subjects, and no message is stored meanwhile. So the subjects of all
 * sessions or workloads, several for each that there is in the store, are no filter for it.
 */
export function isServerFilter(subjects: readonly string[]): boolean {
  return !subjects.some((subject) => isOfMany(subject));
}

function isOfMany(filter: string): boolean {
  const tokens = filter.split('.');
  const isOpen = (at: number) => (tokens[at] ?? '>') === '>' || tokens[at] === '*';
  const mayBe = (at: number, kind: string) => isOpen(at) || tokens[at] === kind;
  if (tokens[0] === 'evt') return isOpen(1) && mayBe(2, 'session') && isOpen(3);
  return mayBe(0, 'fleet') && mayBe(1, 'workload') && isOpen(2);
}

/**
 * If messages are arriving in a burst, yield to the event loop to collect a larger batch, which
 * makes batched writes larger.
 */
async function rush(queue: readonly Arrival[], max: number): Promise<void> {
  for (let before = 1; queue.length > before && queue.length < max;) {
    before = queue.length;
    await new Promise(setImmediate);
  }
}

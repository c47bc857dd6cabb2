import type { JetStreamManager } from '@nats-io/jetstream';
import { nanos, nuid, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { EVENTS_SUBJECTS } from '#events/subjects.ts';
import { createBell } from '#src/async/notifier.ts';
import type { JetStreamConnection } from './connect.ts';
import { readReply } from './jetstream-reply.ts';

/** A message as it came, with its position in the stream. */
export type Arrival = { message: Msg; sequence: number };

export type ReaderOptions = {
  /** EVENTS, or the archive of it: the same events by the same sequences. */
  stream: string;
  after: number;
  subjects: readonly string[];
  signal: AbortSignal;
  /** What `take` will be asked for; more than 500 make larger pulls. */
  batchMax: number;
  /** Called at each heartbeat, of which one comes in 2 s where no message does. */
  onHeartbeat?: () => void;
};

/** One pass over the log, in order and without gap, until it is lost. */
export type Reader = AsyncDisposable & {
  /**
   * What has arrived, at least one and at most `max`; none once the signal has aborted.
   * @throws ReaderLost when all that came before the loss was taken
   */
  take(max: number): Promise<Arrival[]>;
};

/** This pass is over; another has to begin behind what was taken of it. */
export class ReaderLost extends Error {
  override readonly name = 'ReaderLost';
}

/**
 * Messages of one pull, at least; the next is sent when half of it is taken, so at most 1.5 × this
 * wait here.
 */
const PULL_MESSAGES_MIN = 1_000;
const PULL_MS = 30_000;
const HEARTBEAT_MS = 2_000;
const SILENCE_MS = 5_000;
/** The server drops a consumer that has not been pulled from for this long. */
const INACTIVE_MS = 60_000;

/**
 * Opens an ephemeral consumer of the stream and pulls from it, one pull at a time.
 *
 * - reading: a pull is open, or the queue is too full for one.
 * - lost: the server reported trouble, was silent too long, skipped a message or was reconnected
 *   to. What is queued can still be taken; then `take` throws and the caller opens another reader.
 */
export async function openReader(
  connection: JetStreamConnection,
  { stream, after, subjects, signal, batchMax, onHeartbeat }: ReaderOptions,
): Promise<Reader> {
  const { nc, jsm } = connection;
  const consumer = { stream, name: `follow_${nuid.next()}` };
  await connection.whileConnected(addConsumer(jsm, consumer, after, subjects));

  const pullMessages = Math.max(PULL_MESSAGES_MIN, 2 * batchMax);
  const queue: Arrival[] = [];
  const inbox = connection.newInbox();
  let asked = 0;
  let heardAt = performance.now();
  let consumerSequence = 0;
  let lost: ReaderLost | null = null;
  const bell = createBell();

  function lose(reason: string) {
    lost ??= new ReaderLost(reason);
    bell.ring();
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
    // A delivery keeps its own subject; what comes under ours is the server's word on the pull.
    if (message.subject === inbox) return onStatus(message.headers?.code ?? 0, message);
    const facts = readReply(message.reply ?? '');
    if (lost !== null) return;
    if (facts.consumerSequence !== consumerSequence + 1) return lose('a message is missing');
    consumerSequence = facts.consumerSequence;
    asked -= 1;
    queue.push({ message, sequence: facts.sequence });
    bell.ring();
    pull();
  }

  function onStatus(code: number, message: Msg) {
    if (code === 100) return onHeartbeat?.();
    // 408: the pull is over in time, all that it brought has come before.
    if (code !== 408) return lose(`${code} ${message.headers?.description ?? ''}`);
    asked = 0;
    pull();
  }

  const subscription = nc.subscribe(inbox, { callback: onMessage });
  const forget = connection.onReconnect(() => lose('reconnected'));
  const watch = setInterval(() => {
    if (asked > 0 && performance.now() - heardAt > SILENCE_MS) lose('silence');
  }, SILENCE_MS / 5);
  pull();

  return {
    async take(max) {
      while (queue.length === 0 && !signal.aborted) {
        if (lost !== null) throw lost;
        await bell.heard(signal);
      }
      await rush(queue, max);
      if (signal.aborted) return [];
      const taken = queue.splice(0, max);
      pull();
      return taken;
    },
    async [Symbol.asyncDispose]() {
      clearInterval(watch);
      forget();
      subscription.unsubscribe();
      // Nobody waits for this: left alone the server drops it a minute later.
      if (connection.isConnected()) jsm.consumers.delete(stream, consumer.name).catch(() => {});
    },
  };
}

type Consumer = { stream: string; name: string };

function sendPull(
  nc: NatsConnection,
  { stream, name }: Consumer,
  messages: number,
  reply: string,
): void {
  const pull = { batch: messages, expires: nanos(PULL_MS), idle_heartbeat: nanos(HEARTBEAT_MS) };
  const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`;
  nc.publish(subject, JSON.stringify(pull), { reply });
}

async function addConsumer(
  jsm: JetStreamManager,
  { stream, name }: Consumer,
  after: number,
  subjects: readonly string[],
): Promise<void> {
  const isAll = EVENTS_SUBJECTS.every((subject) => subjects.includes(subject));
  await jsm.consumers.add(stream, {
    name,
    ack_policy: 'none',
    deliver_policy: 'by_start_sequence',
    opt_start_seq: after + 1,
    mem_storage: true,
    num_replicas: 1,
    inactive_threshold: nanos(INACTIVE_MS),
    // No filter is the faster one: the server need not look at each message.
    ...(isAll ? {} : { filter_subjects: [...subjects] }),
  });
}

/**
 * Amid many, waits for the rest of what the wire holds: whoever writes batches likes them large.
 */
async function rush(queue: readonly Arrival[], max: number): Promise<void> {
  for (let before = 1; queue.length > before && queue.length < max;) {
    before = queue.length;
    await new Promise(setImmediate);
  }
}

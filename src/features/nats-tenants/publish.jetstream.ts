import { headers as newHeaders } from '@nats-io/transport-node';
import type { RecordedEvent } from '#events/events.ts';
import { MalformedEvent, UnknownEvent, type Message } from '#events/codec.ts';
import { isPublic, STORE_SEQUENCE, toLiveMessage, toPublicMessage } from '#events/public-event.ts';
import { filters, PUBLIC_STREAM } from '#events/subjects.ts';
import { Unavailable, WrittenByNewer } from '#src/kernel/errors.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { createBackOff } from '#src/kernel/async/back-off.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { createStateReader, type StateReader } from '#src/kernel/event-store/load-state.ts';
import { stopAtUnknown } from '#src/kernel/event-store/unreadable.ts';
import {
  requestWithRetry,
  isOutage,
  isWrongLastSequence,
} from '#src/kernel/event-store/jetstream/request.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { createOrganizationSequences } from './organization-sequences.jetstream.ts';

export type PublisherDependencies = {
  connection: JetStreamConnection;
  eventStore: EventStore;
  logger: Logger;
};

/** The end of PUBLIC: its number of messages, and the event-store sequence of the last one. */
type Place = { published: number; sequence: number };

/** Events published at once. */
const BATCH_MAX = 200;
/**
 * Delay between an event and its copy: callers in this process that wait for the event go first.
 * A full batch is a backlog, and waits for nothing.
 */
const PUBLISH_AFTER_MS = 10;
const ANSWER_MS = 2_000;
/** Pause after another process was ahead, and after a failure, before this one tries again. */
const STAND_BY_MS = 1_000;
const WAITS =
  'publishing to tenants waits at an event that only a newer version of the service can read';

/**
 * Copies the organizations' events into PUBLIC, in order and each once, without their internal
 * fields. A stored message is then sent to its organization's live subscribers. Every API process
 * runs it that admits tenants, or that starts while PUBLIC has messages. The nth message is the
 * same event in every process, and is published on condition that it is the nth: one process is
 * ahead, the others stand by, and no event is doubled or left out when that process dies.
 *
 * At an event that a newer version of the service wrote it stops: it publishes nothing after it
 * until a newer process has published it. PUBLIC is append-only, so a skipped event could never be
 * put in. A malformed event, which no process can read, is left out by all of them.
 */
export function publishToTenants(dependencies: PublisherDependencies): AsyncDisposable {
  const stop = new AbortController();
  const { signal } = stop;

  async function run(): Promise<void> {
    const backOff = createBackOff();
    let unknown: string | null = null;
    while (!signal.aborted) {
      try {
        await publishOn(dependencies, signal);
        backOff.reset();
      } catch (error) {
        if (error instanceof UnknownEvent || error instanceof WrittenByNewer) {
          const reason = reasonOf(error);
          if (reason !== unknown) dependencies.logger.warn({ reason }, WAITS);
          unknown = reason;
          await backOff.pause(signal);
        } else if (isTrouble(error) && !signal.aborted) {
          dependencies.logger.error(
            { err: error },
            'publishing events to tenants failed; retrying',
          );
          await backOff.pause(signal);
        }
      }
      await sleep(STAND_BY_MS, signal);
    }
  }
  const running = run();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

/** Whether PUBLIC has a message. @throws Unavailable('event-log') */
export async function hasPublished(connection: JetStreamConnection): Promise<boolean> {
  const { state } = await requestWithRetry(connection, ANSWER_MS, () =>
    connection.jsm.streams.info(PUBLIC_STREAM),
  );
  return state.messages > 0;
}

/** Publishes until another process is ahead. @throws Error without the event store or PUBLIC */
async function publishOn(dependencies: PublisherDependencies, signal: AbortSignal): Promise<void> {
  const { eventStore, logger } = dependencies;
  const place = await placeOf(dependencies.connection);
  const batches = eventStore.subscribe({
    subjects: filters.tenants,
    after: place.sequence,
    signal,
    batchMax: BATCH_MAX,
    onUnreadable(poison) {
      stopAtUnknown(poison);
      logger.error(poison, 'malformed event not published to tenants');
    },
  });
  const states = createStateReader(eventStore);
  const sequences = createOrganizationSequences(dependencies.connection);
  for await (const batch of batches) {
    if (batch.length < BATCH_MAX) await letRequestsGoFirst(batch, signal);
    const wanted = batch.filter(({ type }) => isPublic(type));
    const { events, refusal } = await complete(states, wanted);
    const numbers = await sequences.next(events.map(organizationOf), place.published);
    if (numbers === null) return;
    const messages = events.map((event, index) => toPublicMessage(event, numbers[index] as number));
    if (!(await publish(dependencies.connection, messages, place))) return;
    place.published += events.length;
    if (refusal !== null) throw refusal;
  }
}

/** Waits until the newest event is `PUBLISH_AFTER_MS` old; not longer, whatever the clocks say. */
async function letRequestsGoFirst(batch: readonly RecordedEvent[], signal: AbortSignal) {
  const ageMs = Date.now() - Date.parse(batch.at(-1)?.time ?? '');
  if (ageMs >= 0 && ageMs < PUBLISH_AFTER_MS) await sleep(PUBLISH_AFTER_MS - ageMs, signal);
}

/** Tenants get the state with each event: of another version, it is folded from the history. */
async function complete(states: StateReader, batch: readonly RecordedEvent[]) {
  const events: RecordedEvent[] = [];
  for (const event of batch) {
    try {
      events.push(await states.complete(event));
    } catch (error) {
      if (error instanceof WrittenByNewer) return { events, refusal: error };
      // A malformed history: the event is published without a state.
      if (!(error instanceof MalformedEvent)) throw error;
      events.push(event);
    }
  }
  return { events, refusal: null };
}

function reasonOf(error: UnknownEvent | WrittenByNewer): string {
  return error instanceof WrittenByNewer ? String(error.cause) : error.message;
}

async function placeOf(connection: JetStreamConnection): Promise<Place> {
  const { jsm } = connection;
  return requestWithRetry(connection, ANSWER_MS, async () => {
    const { state } = await jsm.streams.info(PUBLIC_STREAM);
    if (state.last_seq === 0) return { published: 0, sequence: 0 };
    const last = await jsm.streams.getMessage(PUBLIC_STREAM, { seq: state.last_seq });
    const sequence = Number(last?.header.get(STORE_SEQUENCE));
    if (!Number.isSafeInteger(sequence))
      throw new Error('a message in the stream PUBLIC has no sequence of its event');
    return { published: state.last_seq, sequence };
  });
}

/**
 * Stores the messages, and sends those that were stored to the organizations that listen.
 * @returns false where another process was ahead with one of them
 */
async function publish(
  connection: JetStreamConnection,
  batch: readonly Message[],
  { published }: Place,
): Promise<boolean> {
  const answers = batch.map(({ subject, headers, body }, index) => {
    const expect = { lastSequence: published + index };
    return connection.js.publish(subject, body, {
      headers: headersFrom(headers),
      expect,
      timeout: ANSWER_MS,
    });
  });
  const outcomes = await connection.whileConnected(Promise.allSettled(answers));
  for (const [index, { status }] of outcomes.entries())
    if (status === 'fulfilled') sendLive(connection, batch[index] as Message);
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed === undefined) return true;
  if (isWrongLastSequence(failed.reason)) return false;
  throw failed.reason;
}

/** At most once: a message whose store was not acknowledged is not sent, and shows as a gap. */
function sendLive({ nc }: JetStreamConnection, message: Message): void {
  const { subject, headers, body } = toLiveMessage(message);
  nc.publish(subject, body, { headers: headersFrom(headers) });
}

function headersFrom(headers: Message['headers']) {
  const all = newHeaders();
  for (const [name, value] of Object.entries(headers)) all.set(name, value);
  return all;
}

function organizationOf({ aggregate }: RecordedEvent): string {
  return 'organizationId' in aggregate ? aggregate.organizationId : '';
}

/** An outage is in the service's log already. */
function isTrouble(error: unknown): boolean {
  return !(error instanceof Unavailable) && !isOutage(error);
}

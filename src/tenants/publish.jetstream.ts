import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
import { JetStreamApiError } from '@nats-io/jetstream';
import { headers as newHeaders } from '@nats-io/transport-node';
import type { RecordedEvent } from '#events/events.ts';
import { toPublicMessage } from '#events/public-event.ts';
import { filters, PUBLIC_STREAM } from '#events/subjects.ts';
import { Unavailable } from '#src/errors.ts';
import { createBackOff } from '#src/async/back-off.ts';
import type { JetStreamConnection } from '../event-store/jetstream/connect.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { ask, isOutage } from '#src/event-store/jetstream/request.ts';
import type { Log } from '#src/telemetry/logger.ts';

export type PublisherParts = { connection: JetStreamConnection; log: EventLog; logger: Log };

/** How far PUBLIC goes: its last message's number, and the sequence in the log of its event. */
type Place = { published: number; sequence: number };

/** Events published at once. */
const BATCH_MAX = 200;
const ANSWER_MS = 2_000;
/** After another process was ahead, and after trouble: how late the next takes over from it. */
const STAND_BY_MS = 1_000;
/** The stream is further than expected; the same while a rival is under way. */
const REFUSED = new Set([10071, 10164]);

/**
 * Copies what organizations may read of the log into PUBLIC: all events of theirs, in order, each
 * once, less what stays inside. Every process that lets tenants in runs it. The nth message is the
 * same event whoever publishes it, and is published on condition that it is the nth: so of several
 * one is ahead, the others stand by, and nothing is doubled or left out when it dies.
 */
export function publishToTenants(parts: PublisherParts): AsyncDisposable {
  const stop = new AbortController();
  const { signal } = stop;

  async function run(): Promise<void> {
    const backOff = createBackOff();
    while (!signal.aborted) {
      try {
        await publishOn(parts, signal);
        backOff.reset();
      } catch (error) {
        if (isTrouble(error) && !signal.aborted) {
          parts.logger.error({ err: error }, 'tenants are not told of events; trying on');
          await backOff.pause(signal);
        }
      }
      await pause(STAND_BY_MS, undefined, { signal }).catch(() => undefined);
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

/** Publishes until another process is ahead. @throws Error where the log or PUBLIC is away */
async function publishOn(parts: PublisherParts, signal: AbortSignal): Promise<void> {
  const { log, logger } = parts;
  const place = await placeOf(parts.connection);
  const batches = log.follow({
    subjects: filters.tenants,
    after: place.sequence,
    signal,
    batchMax: BATCH_MAX,
    onMalformed: (poison) => logger.error(poison, 'malformed event kept from tenants'),
  });
  for await (const batch of batches) {
    // Those who wait for the event in this process go first.
    await turn();
    if (!(await publish(parts.connection, batch, place.published))) return;
    place.published += batch.length;
  }
}

async function placeOf(connection: JetStreamConnection): Promise<Place> {
  const { jsm } = connection;
  return ask(connection, ANSWER_MS, async () => {
    const { state } = await jsm.streams.info(PUBLIC_STREAM);
    if (state.last_seq === 0) return { published: 0, sequence: 0 };
    const last = await jsm.streams.getMessage(PUBLIC_STREAM, { seq: state.last_seq });
    const sequence = Number(last?.header.get('ce-sequence'));
    if (!Number.isSafeInteger(sequence)) throw new Error('a message in PUBLIC is not of its kind');
    return { published: state.last_seq, sequence };
  });
}

/** False where another process was ahead with one of them. */
async function publish(
  connection: JetStreamConnection,
  batch: readonly RecordedEvent[],
  published: number,
): Promise<boolean> {
  const answers = batch.map((event, index) => {
    const { subject, headers, body } = toPublicMessage(event);
    const all = newHeaders();
    for (const [name, value] of Object.entries(headers)) all.set(name, value);
    const expect = { lastSequence: published + index };
    return connection.js.publish(subject, body, { headers: all, expect, timeout: ANSWER_MS });
  });
  const outcomes = await connection.whileConnected(Promise.allSettled(answers));
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed === undefined) return true;
  if (failed.reason instanceof JetStreamApiError && REFUSED.has(failed.reason.code)) return false;
  throw failed.reason;
}

/** An outage is in the service's log already. */
function isTrouble(error: unknown): boolean {
  return !(error instanceof Unavailable) && !isOutage(error);
}

import { nuid, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node';
import { generateEvents, type GeneratedEvent } from './events/event-generator.ts';

/** The largest batch that the server accepts. */
const BATCH = 1_000;
const WITHIN_MS = 60_000;

/**
 * Appends that many events of mixed histories to an empty event store, in the largest possible
 * batches.
 */
export async function fillLog(
  nc: NatsConnection,
  count: number,
  onBatch: (made: number) => void = () => {},
): Promise<void> {
  let batch: GeneratedEvent[] = [];
  let made = 0;
  let before = Promise.resolve();
  for (const event of generateEvents(count)) {
    batch.push(event);
    made += 1;
    if (batch.length < BATCH && made < count) continue;
    // The next batch is made while the server stores this one; the server stores them in order.
    const stored = publish(nc, batch);
    stored.catch(() => undefined); // it is awaited after the next one
    await before;
    before = stored;
    onBatch(made);
    batch = [];
  }
  await before;
}

async function publish(nc: NatsConnection, events: readonly GeneratedEvent[]): Promise<void> {
  const batchId = nuid.next();
  const last = events.length - 1;
  for (const [index, { subject, headers, body }] of events.entries()) {
    const own = `Nats-Batch-Id: ${batchId}\r\nNats-Batch-Sequence: ${index + 1}\r\n`;
    if (index < last) {
      nc.publish(subject, body, { headers: encoded(headers, own) });
      continue;
    }
    const commit = encoded(headers, `${own}Nats-Batch-Commit: 1\r\n`);
    const reply = await nc.request(subject, body, { headers: commit, timeout: WITHIN_MS });
    const { error } = reply.json<{ error?: { description: string } }>();
    if (error !== undefined) throw new Error(`the log refused a batch: ${error.description}`);
  }
}

/** The client's own headers take a third of the total time: it needs only their bytes. */
function encoded(headers: GeneratedEvent['headers'], more: string): MsgHdrs {
  let text = 'NATS/1.0\r\n';
  for (const [name, value] of Object.entries(headers)) text += `${name}: ${value}\r\n`;
  const bytes = Buffer.from(`${text}${more}\r\n`);
  return { encode: () => bytes } as unknown as MsgHdrs;
}

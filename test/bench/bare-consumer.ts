/**
 * The limit of a rebuild: the stock client's ordered consumer of the sessions' events, which only
 * parses each body. Prints events a second: `bare-consumer.ts <nats url>`.
 */
import { jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { EVENTS_STREAM, filters } from '#events/subjects.ts';

const [url = ''] = process.argv.slice(2);
const nc = await connect({ servers: new URL(url).host });
const consumers = jetstream(nc).consumers;
const consumer = await consumers.get(EVENTS_STREAM, { filter_subjects: filters.sessions });
const { num_pending: pending } = await consumer.info();
const begunAt = performance.now();
let parsed = 0;
const messages = await consumer.consume({ max_messages: 1_000 });
for await (const message of messages) {
  message.json();
  parsed += 1;
  if (parsed === pending) break;
}
process.stdout.write(`${parsed / ((performance.now() - begunAt) / 1000)}\n`);
await nc.close();

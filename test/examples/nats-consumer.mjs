// Works through an organization's events: node nats-consumer.mjs <nats://host:port> <organization> <key>
import { createHash } from 'node:crypto';
import { jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';

const [, , address, organization, key] = process.argv;
const inbox = createHash('sha256').update(key).digest('hex').slice(0, 32);
const login = { user: 'durable', pass: key, inboxPrefix: `_INBOX_${inbox}` };
const connection = await connect({ servers: new URL(address).host, ...login });
const { consumers } = jetstream(connection, { apiPrefix: 'tenant', checkAPI: false });
const consumer = await consumers.get('PUBLIC', `org_${organization}`);
for await (const message of await consumer.consume()) {
  const { headers } = message;
  // The organization's own number: 1, 2, 3 …
  const number = headers.get('ce-orgsequence');
  console.log(number, headers.get('ce-type'), headers.get('ce-subject'));
  message.ack();
}

import { pino } from 'pino';
import { expect, it } from 'vitest';
import { isPublic, toPublicMessage } from '#events/public-event.ts';
import { filters, PUBLIC_STREAM } from '#events/subjects.ts';
import { readEvents } from '#src/cli/read-events.ts';
import { carryForward } from '#src/commands/carry-forward.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import type { EventStore } from '#src/event-store/event-store.ts';
import { connectJetStream } from '#src/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/event-store/jetstream/connection.ts';
import { createJetStreamEventStore } from '#src/event-store/jetstream/jetstream-event-store.ts';
import { publishToTenants } from '#src/tenants/publish.jetstream.ts';
import { appendEach } from '#test/support/stores/event-stores.ts';
import { aSession } from '#test/support/events.fixture.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { eventually } from '#test/support/service/service.ts';

const logger = pino({ level: 'silent' });

it('copies each event once and in order, whichever process copies and whichever ends', async () => {
  await using nats = await startNats();
  await using stack = new AsyncDisposableStack();
  const connections: JetStreamConnection[] = [];
  for (const name of ['one', 'two'])
    connections.push(stack.use(await connectJetStream({ url: nats.url, name })));
  const [first, second] = connections as [JetStreamConnection, JetStreamConnection];
  const eventStore = createJetStreamEventStore(first);
  const publish = (connection: JetStreamConnection) =>
    publishToTenants({ connection, eventStore: createJetStreamEventStore(connection), logger });

  // Some events are older than the first process that copies.
  await appendEach(eventStore, aSession(), 30);
  await carryForwardIn(eventStore);
  const ahead = publish(first);
  stack.use(publish(second));
  const appending = Promise.all([
    appendEach(eventStore, aSession(), 150),
    appendEach(eventStore, aSession(), 150),
  ]);
  await eventually(async () => (await published(second)).length > 60, 'some are copied');
  await carryForwardIn(eventStore);
  await ahead[Symbol.asyncDispose]();
  await appending;
  // A batch with nothing to copy, and the last message of PUBLIC is not the last event.
  await carryForwardIn(eventStore);
  await carryForwardIn(eventStore);
  stack.use(publish(first));
  await appendEach(eventStore, aSession(), 40);

  const expected: unknown[] = [];
  for await (const event of readEvents(eventStore, filters.tenants, fail)) {
    if (!isPublic(event.type)) continue;
    const { subject, body } = toPublicMessage(event);
    expected.push([subject, String(event.sequence), new TextDecoder().decode(body)]);
  }
  expect(expected).toHaveLength(374);
  await eventually(
    async () => (await published(first)).length >= expected.length,
    'all are copied',
  );
  expect(await published(first)).toEqual(expected);
});

it('leaves out a state that is carried forward, and counts on without it', async () => {
  await using nats = await startNats();
  await using stack = new AsyncDisposableStack();
  const connection = stack.use(await connectJetStream({ url: nats.url, name: 'one' }));
  const eventStore = createJetStreamEventStore(connection);
  for (let count = 0; count < 3; count += 1) await carryForwardIn(eventStore);
  const places: (number | undefined)[] = [];
  const js = Object.create(connection.js) as JetStreamConnection['js'];
  js.publish = (subject, payload, options) => {
    places.push(options?.expect?.lastSequence);
    return connection.js.publish(subject, payload, options);
  };
  stack.use(publishToTenants({ connection: { ...connection, js }, eventStore, logger }));
  await eventually(async () => (await published(connection)).length === 3, 'the first are copied');
  for (let count = 0; count < 3; count += 1) await carryForwardIn(eventStore);
  await eventually(async () => (await published(connection)).length === 6, 'all are copied');
  // A wrong place would be refused, and tried again.
  expect(places).toEqual([0, 1, 2, 3, 4, 5]);
});

/** A new session whose state is carried forward: organizations get the first of two events. */
async function carryForwardIn(eventStore: EventStore): Promise<void> {
  const session = aSession();
  const [sequence = 0] = await appendEach(eventStore, session, 1);
  const context = createCommandContext(eventStore, Date.now);
  expect(await carryForward(context, session, sequence, newMetadata('test'))).toBe('carried');
}

/** Subject, sequence in the event store and body of each message. */
async function published({ jsm }: JetStreamConnection): Promise<unknown[]> {
  const { state } = await jsm.streams.info(PUBLIC_STREAM);
  const numbers = Array.from({ length: state.last_seq }, (_, index) => index + 1);
  const messages = numbers.map((seq) => jsm.streams.getMessage(PUBLIC_STREAM, { seq }));
  return (await Promise.all(messages)).map((message) => [
    message?.subject,
    message?.header.get('ce-sequence'),
    message?.string(),
  ]);
}

function fail(text: string): never {
  throw new Error(text);
}

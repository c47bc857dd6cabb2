import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { isPublic, toPublicMessage } from '#events/public-event.ts';
import { filters, PUBLIC_STREAM } from '#events/subjects.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';
import { carryForward } from '#src/commands/carry-forward.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { publishToTenants } from '#src/features/nats-tenants/publish.jetstream.ts';
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
  const ofOrganization = new Map<string, number>();
  for await (const event of readEvents(eventStore, filters.tenants, fail)) {
    if (!isPublic(event.type)) continue;
    const organization = 'organizationId' in event.aggregate ? event.aggregate.organizationId : '';
    const number = (ofOrganization.get(organization) ?? 0) + 1;
    ofOrganization.set(organization, number);
    const { subject, body, headers } = toPublicMessage(event, number);
    const numbers = [headers['ce-sequence'], headers['ce-orgsequence']];
    expected.push([subject, ...numbers, new TextDecoder().decode(body)]);
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
  // A wrong place would be another number. A late acknowledgement has the publisher start over, at
  // places that it asked for before.
  expect([...new Set(places)]).toEqual([0, 1, 2, 3, 4, 5]);
});

describe('an organization’s own sequence', () => {
  const [busy, quiet] = ['org_busy', 'org_quiet'];
  const numbersOf = async (connection: JetStreamConnection, organization: string) =>
    (await published(connection))
      .filter(([subject]) => String(subject).startsWith(`pub.${organization}.`))
      .map(([, , number]) => Number(number));

  it('has no gaps, whatever others do and whichever process goes on', async () => {
    await using nats = await startNats();
    await using stack = new AsyncDisposableStack();
    const connection = stack.use(await connectJetStream({ url: nats.url, name: 'one' }));
    const eventStore = createJetStreamEventStore(connection);
    const append = async () => {
      await appendEach(eventStore, aSession(busy), 20);
      await appendEach(eventStore, aSession(quiet), 2);
    };
    for (const count of [22, 44, 66]) {
      await using _ = publishToTenants({ connection, eventStore, logger });
      await append();
      await eventually(async () => (await published(connection)).length === count, 'published');
    }
    expect(await numbersOf(connection, quiet)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await numbersOf(connection, busy)).toEqual(
      Array.from({ length: 60 }, (_, at) => at + 1),
    );
  });

  it('is the only number in live messages', async () => {
    await using nats = await startNats();
    await using stack = new AsyncDisposableStack();
    const connection = stack.use(await connectJetStream({ url: nats.url, name: 'one' }));
    const eventStore = createJetStreamEventStore(connection);
    const listener = stack.use(await connectJetStream({ url: nats.url, name: 'listener' }));
    const heard: [string, string][][] = [];
    listener.nc.subscribe(`live.evt.${quiet}.>`, {
      callback: (_, message) => {
        const { headers } = message;
        heard.push(headers?.keys().map((name) => [name, headers.get(name)]) ?? []);
      },
    });
    await listener.nc.flush();
    stack.use(publishToTenants({ connection, eventStore, logger }));
    for (let round = 0; round < 3; round += 1) {
      await appendEach(eventStore, aSession(busy), 10 * round);
      await appendEach(eventStore, aSession(quiet), 1);
    }
    await eventually(() => heard.length === 3, 'the quiet one has its events');
    const numbers = heard.flat().filter(([, value]) => /^-?\d+$/.test(value));
    expect(numbers).toEqual(['1', '2', '3'].map((number) => ['ce-orgsequence', number]));
    expect(heard.flat().filter(([name]) => /^nats-/i.test(name))).toEqual([]);
  });

  it('begins with 1 again once all messages of the organization have been purged', async () => {
    await using nats = await startNats();
    await using stack = new AsyncDisposableStack();
    const connection = stack.use(await connectJetStream({ url: nats.url, name: 'one' }));
    const eventStore = createJetStreamEventStore(connection);
    const whilePublishing = async (until: number, append: () => Promise<unknown>) => {
      await using _ = publishToTenants({ connection, eventStore, logger });
      await append();
      const { jsm } = connection;
      const end = async () => (await jsm.streams.info(PUBLIC_STREAM)).state.last_seq;
      await eventually(async () => (await end()) === until, 'published');
    };
    await whilePublishing(5, async () => {
      await appendEach(eventStore, aSession(quiet), 3);
      await appendEach(eventStore, aSession(busy), 2);
    });
    // As the archivist does: the newest message stays.
    await connection.jsm.streams.purge(PUBLIC_STREAM, { seq: 5 });
    await whilePublishing(7, async () => {
      await appendEach(eventStore, aSession(quiet), 1);
      await appendEach(eventStore, aSession(busy), 1);
    });
    const numberAt = async (seq: number) =>
      (await connection.jsm.streams.getMessage(PUBLIC_STREAM, { seq }))?.header.get(
        'ce-orgsequence',
      );
    expect([await numberAt(5), await numberAt(6), await numberAt(7)]).toEqual(['2', '1', '3']);
  });
});

/** A new session whose state is carried forward: organizations get the first of two events. */
async function carryForwardIn(eventStore: EventStore): Promise<void> {
  const session = aSession();
  const [sequence = 0] = await appendEach(eventStore, session, 1);
  const context = createCommandContext(eventStore, Date.now);
  expect(await carryForward(context, session, sequence, newMetadata('test'))).toBe('carried');
}

/** Subject, sequence in the event store, number in its organization and body of each message. */
async function published({ jsm }: JetStreamConnection) {
  const { state } = await jsm.streams.info(PUBLIC_STREAM);
  const numbers = Array.from({ length: state.last_seq }, (_, index) => index + 1);
  const messages = numbers.map((seq) => jsm.streams.getMessage(PUBLIC_STREAM, { seq }));
  return (await Promise.all(messages)).map((message) => [
    message?.subject,
    message?.header.get('ce-sequence'),
    message?.header.get('ce-orgsequence'),
    message?.string(),
  ]);
}

function fail(text: string): never {
  throw new Error(text);
}

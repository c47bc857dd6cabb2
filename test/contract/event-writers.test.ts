import { connect, PermissionViolationError, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { objectWritersOf, writersOf, type Writer } from '#events/writers.ts';
import { dataVersion } from '#events/upcast.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { readMessage, todaysSchemas } from '#test/support/events/golden-files.ts';
import {
  natsUsers,
  passwordOf,
  startNatsWithRoles,
  type NatsUser,
  type NatsWithRoles,
} from '#test/support/servers/nats-roles.ts';

/**
 * Each type of event, and each kind of object, published as each user of deploy/nats.conf on a real
 * server: it is stored for the roles of `events/writers.ts`, and for all others refused. The other
 * subjects are in nats-permissions.test.ts.
 */

const events = [...todaysSchemas.keys()].map((type) => ({
  name: type,
  subject: readMessage(type, dataVersion(type)).subject,
  writers: writersOf[type] ?? [],
}));
const objects = Object.entries(objectWritersOf).flatMap(([kind, writers]) =>
  [`obj.head.${kind}.acme.a`, `obj.chunk.${kind}.acme.a.p.0`].map((subject) => ({
    ...{ name: subject, subject, writers },
  })),
);
const all = [...events, ...objects];

let nats: NatsWithRoles;
beforeAll(async () => {
  nats = await startNatsWithRoles();
  // It makes the streams that acknowledge what is published.
  await using _ = await connectJetStream({ url: nats.urlOf('api'), inboxPrefix: '_INBOX_api' });
});
afterAll(() => nats[Symbol.asyncDispose]());

/** The stream that has acknowledged it, `refused` for lack of permission, or another error. */
async function publish(connection: NatsConnection, subject: string): Promise<string> {
  try {
    const { stream, error } = (await connection.request(subject, '', { timeout: 60_000 })).json<{
      stream?: string;
      error?: unknown;
    }>();
    return stream ?? JSON.stringify(error);
  } catch (error) {
    const refusal = error instanceof Error && error.cause !== undefined ? error.cause : error;
    return refusal instanceof PermissionViolationError ? 'refused' : String(error);
  }
}

describe.each(natsUsers)('%s', (user: NatsUser) => {
  test('may write its own events and objects, and no others', async () => {
    const connection = await connect({
      servers: nats.url.replace('nats://', ''),
      user,
      pass: passwordOf(user),
      inboxPrefix: `_INBOX_${user}`,
      reconnect: false,
    });
    const done = all.map(async ({ name, subject }) => [name, await publish(connection, subject)]);
    const outcomes = Object.fromEntries(await Promise.all(done)) as Record<string, string>;
    await connection.close();
    const may = (writers: readonly Writer[]) =>
      user === 'service' || writers.includes(user as Writer);
    expect(outcomes).toEqual({
      ...Object.fromEntries(
        events.map(({ name, writers }) => [name, may(writers) ? 'EVENTS' : 'refused']),
      ),
      ...Object.fromEntries(
        objects.map(({ name, writers }) => [name, may(writers) ? 'OBJECTS' : 'refused']),
      ),
    });
  });
});

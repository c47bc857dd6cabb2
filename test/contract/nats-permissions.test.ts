import { PermissionViolationError, connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { handleCommand, createCommandContext } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { decideServer } from '#src/kernel/domain/fleet/server.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { createJetStreamTruncation } from '#src/kernel/event-store/jetstream/jetstream-truncation.ts';
import { createJetStreamDeadLetters } from '#src/kernel/messaging/jetstream/jetstream-dead-letters.ts';
import { newProgress } from '#src/features/webhooks/progress.ts';
import { createJetStreamWebhookRecords } from '#src/features/webhooks/webhook-records.jetstream.ts';
import { createJetStreamLeases } from '#src/kernel/messaging/jetstream/jetstream-leases.ts';
import { createJetStreamQuestions } from '#src/kernel/messaging/jetstream/jetstream-questions.ts';
import { handleServerCommand } from '#src/commands/operator/servers.ts';
import { aSession } from '#test/support/events.fixture.ts';
import { appendEach } from '#test/support/stores/event-stores.ts';
import { eventually } from '#test/support/service/service.ts';
import {
  session,
  purges,
  hooks,
  everybody,
  inboxes,
  forbidden,
} from '#test/support/servers/nats-forbidden.ts';
import {
  passwordOf,
  natsUsers,
  startNatsWithRoles,
  type NatsUser,
  type NatsWithRoles,
} from '#test/support/servers/nats-roles.ts';

/** Operations that the users of deploy/nats.conf may not do, each tried on a real server. */

let nats: NatsWithRoles;
beforeAll(async () => {
  nats = await startNatsWithRoles();
});
afterAll(() => nats[Symbol.asyncDispose]());
async function connectAs(user: NatsUser): Promise<NatsConnection> {
  const servers = nats.url.replace('nats://', '');
  const inboxPrefix = `_INBOX_${user}`;
  return connect({ servers, user, pass: passwordOf(user), inboxPrefix, reconnect: false });
}

const inboxOf = (user: NatsUser) => ({ inboxPrefix: `_INBOX_${user}` });

describe.each(natsUsers)('%s', (user) => {
  test('may publish on no other user’s subjects', async () => {
    const nc = await connectAs(user);
    const refused = new Set<string>();
    const listening = (async () => {
      for await (const status of nc.status())
        if (status.type === 'error' && status.error instanceof PermissionViolationError)
          // By then the readers' requests to JetStream have another subject.
          refused.add(status.error.subject.replace(/^readers\./, '$JS.API.'));
    })();
    const others = [
      ...(['archivist', 'service'].includes(user) ? [] : purges),
      ...(['webhooks', 'service'].includes(user) ? [] : hooks),
    ];
    const tried = [...new Set([...forbidden[user], ...others, ...everybody, ...inboxes(user)])];
    for (const subject of tried) nc.publish(subject);
    await nc.flush();
    await nc.close();
    await listening;
    expect(tried.filter((subject) => !refused.has(subject))).toEqual([]);
  });

  test('may subscribe only to its own inbox', async () => {
    const nc = await connectAs(user);
    const wanted = [
      '>',
      'evt.>',
      'live.>',
      '$JS.>',
      '$KV.>',
      'ask.>',
      '_INBOX.>',
      ...inboxes(user),
    ];
    const refusals = wanted.map(async (subject) => {
      const { promise, resolve } = Promise.withResolvers<string | null>();
      nc.subscribe(subject, { callback: (error) => resolve(error?.name ?? null) });
      return promise;
    });
    await nc.flush();
    expect(new Set(await Promise.all(refusals))).toEqual(new Set(['PermissionViolationError']));
    await nc.close();
  });
});

test('api may do what an operator decides by it', async () => {
  await using maker = await connectJetStream({ url: nats.urlOf('service'), ...inboxOf('service') });
  await using connection = await connectJetStream({
    ...{ url: nats.urlOf('api'), makesStreams: false, ...inboxOf('api') },
  });
  const deadLetters = createJetStreamDeadLetters(connection);
  const one = { by: 'view:v1', sequence: 1, subject: 'a', reason: 'a test' };
  await createJetStreamDeadLetters(maker).add(one);
  await createJetStreamDeadLetters(maker).add({ ...one, sequence: 2 });
  await deadLetters.skip(one, 'ada', 'a test');
  await deadLetters.resolve({ ...one, sequence: 2 });
  expect(await deadLetters.list()).toEqual([]);
  const joined = { type: 'Join', ip: '10.0.0.1', browsers: 'simulated', poolMax: 1 } as const;
  const contextOf = (of: typeof maker) =>
    createCommandContext(createJetStreamEventStore(of), Date.now);
  const server = { kind: 'server', id: 'srv_9' } as const;
  await handleCommand<'server'>(
    contextOf(maker),
    server,
    (state) => decideServer(joined, state),
    newMetadata('test'),
  );
  for (const type of ['Drain', 'Undrain'] as const)
    expect(
      await handleServerCommand(contextOf(connection), 'srv_9', { type }, newMetadata('test')),
    ).toMatchObject({ status: type === 'Drain' ? 'draining' : 'live' });
});

test.each([
  ['api', 'provisioner'],
  ['service', 'service'],
] as const)('%s may ask for a screenshot, and %s answer it', async (asking, answering) => {
  await using one = await connectJetStream({
    ...{ url: nats.urlOf(asking), makesStreams: false, ...inboxOf(asking) },
  });
  await using other = await connectJetStream({
    ...{ url: nats.urlOf(answering), makesStreams: false, ...inboxOf(answering) },
  });
  const picture = { kind: 'image', etag: 'one', bytes: Buffer.alloc(300_000, 1) } as const;
  using _ = createJetStreamQuestions(other).serve('srv_1', 'screenshot', async () => picture);
  const asked = { organizationId: 'acme', sessionId: 'ses_1', workloadId: 'wl_1' };
  const question = { ...asked, maxWidth: 640, known: [] };
  const ask = () => createJetStreamQuestions(one).ask('srv_1', 'screenshot', question);
  await eventually(async () => (await ask()).kind === 'image', 'it is answered');
});

test.each(['webhooks', 'service'] as const)(
  '%s may keep what becomes of webhooks',
  async (user) => {
    await using maker = await connectJetStream({
      url: nats.urlOf('service'),
      ...inboxOf('service'),
    });
    await using connection = await connectJetStream({
      ...{ url: nats.urlOf(user), makesStreams: false, ...inboxOf(user) },
    });
    await using api = await connectJetStream({
      ...{ url: nats.urlOf('api'), makesStreams: false, ...inboxOf('api') },
    });
    const [records, seen] = [connection, api].map(createJetStreamWebhookRecords);
    const id = `whk_${user}`;
    const progress = newProgress(1);
    const revision = (await records?.save(id, progress, 0)) ?? 0;
    expect(await seen?.load(id)).toEqual({ progress, revision });
    expect(await records?.load(id)).toEqual({ progress, revision });
    expect(await seen?.attempts(id)).toEqual([]);
    await records?.forget(id);
    expect(await records?.load(id)).toEqual({ progress: null, revision: 0 });
    expect(maker.isConnected()).toBe(true);
    const leases = await createJetStreamLeases(connection);
    expect(await leases.acquire('webhooks', user)).toBe(true);
    await leases.release('webhooks', user);
  },
);

test.each(['archivist', 'service'] as const)(
  '%s may do what a run of the archivist asks for',
  async (user) => {
    await using maker = await connectJetStream({
      url: nats.urlOf('service'),
      ...inboxOf('service'),
    });
    const eventStore = createJetStreamEventStore(maker);
    await appendEach(eventStore, aSession(), 4);
    const { lastSequence } = await eventStore.info();
    await using connection = await connectJetStream({
      ...{ url: nats.urlOf(user), makesStreams: false, ...inboxOf(user) },
    });
    const leases = await createJetStreamLeases(connection);
    for (const _ of ['created', 'updated'])
      expect(await leases.acquire('archivist', user)).toBe(true);
    const truncation = createJetStreamTruncation(connection);
    expect(await truncation.heldBackTo()).toBeNull();
    await truncation.truncate(lastSequence - 1);
    await truncation.truncatePublic(lastSequence - 1);
    const { firstSequence } = await createJetStreamEventStore(connection).info();
    expect(firstSequence).toBe(lastSequence);
    await leases.release('archivist');
  },
);

/**
 * Makes JetStream answer to the subject of an event, if permitted; returns when all answers are
 * sent.
 */
async function forge(user: NatsUser, reply: string): Promise<void> {
  const nc = await connectAs(user);
  const ask = (subject: string, body = '') => nc.publish(subject, body, { reply });
  ask('$JS.API.STREAM.INFO.EVENTS');
  ask('$JS.API.STREAM.MSG.GET.EVENTS', JSON.stringify({ seq: 1 }));
  ask('$JS.API.DIRECT.GET.EVENTS', JSON.stringify({ seq: 1 }));
  await nc.request('$JS.API.STREAM.INFO.EVENTS', '', { timeout: 60_000 });
  await nc.close();
}

test('no answer of JetStream to a projector or a gateway is stored as an event', async () => {
  await using log = await connectJetStream({ url: nats.urlOf('api') });
  const storedAt = async (subject: string) => {
    const query = { subjects_filter: subject };
    return (await log.jsm.streams.info('EVENTS', query)).state.subjects?.[subject] ?? 0;
  };
  for (const user of ['projector', 'gateway', 'api'] as const)
    await forge(user, session(`requested-by-${user}`));
  // The roles that append events are trusted: their answers are stored, the last of all.
  await eventually(async () => (await storedAt(session('requested-by-api'))) > 0, 'they are');
  expect(await storedAt(session('requested-by-projector'))).toBe(0);
  expect(await storedAt(session('requested-by-gateway'))).toBe(0);
});

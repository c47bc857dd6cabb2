import { PermissionViolationError, connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { handleCommand, createCommandContext } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { decideServer } from '#src/domain/fleet/server.ts';
import { connectJetStream } from '#src/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/event-store/jetstream/jetstream-event-store.ts';
import { createJetStreamTruncation } from '#src/event-store/jetstream/jetstream-truncation.ts';
import { createJetStreamDeadLetters } from '#src/messaging/jetstream/jetstream-dead-letters.ts';
import { createJetStreamLeases } from '#src/messaging/jetstream/jetstream-leases.ts';
import { createJetStreamScreenshots } from '#src/messaging/jetstream/jetstream-screenshots.ts';
import { handleServerCommand } from '#src/operator/servers.ts';
import { aSession } from '#test/support/events.fixture.ts';
import { appendEach } from '#test/support/stores/event-stores.ts';
import { eventually } from '#test/support/service/service.ts';
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

const session = (type: string) => `evt.acme.session.ses_1.${type}`;
const handoff = ['handoff-requested', 'handoff-taken', 'handoff-completed', 'handoff-expired'];
const filed = ['file-added', 'file-removed', 'file-refused'];
/** One event of every type of a session. */
const life = [
  'requested',
  'queued',
  'assigned',
  'requeued',
  'activated',
  'extended',
  'access-rotated',
  'expiry-warning',
  'accessed',
  ...handoff,
  ...['share-created', 'share-used', 'share-revoked'],
  ...filed,
  'updated',
  ...['profile-saved', 'profile-not-saved'],
  'stop-requested',
  'stopped',
  'failed',
];
const ends = ['stop-requested', 'stopped', 'failed'];
const profile = ['profile-saved', 'profile-not-saved'];
const allBut = (...mine: string[]) => life.filter((type) => !mine.includes(type)).map(session);

const money = ['evt.acme.ledger.credits-granted', 'evt.acme.ledger.slot-reserved'];
const people = ['organization.key-issued', 'profile.prf_1.removed'].map((one) => `evt.acme.${one}`);
const fleet = ['fleet.server.srv_1.joined', 'fleet.workload.wl_1.idle'];
/** JetStream requests that no user may send: they would lose or change events. */
const ruin = [
  '$JS.API.STREAM.DELETE.EVENTS',
  '$JS.API.STREAM.MSG.DELETE.EVENTS',
  '$JS.API.STREAM.DELETE.KV_leases',
  '$JS.API.STREAM.DELETE.OBJECTS',
  '$JS.API.STREAM.MSG.DELETE.OBJECTS',
  '$JS.API.ACCOUNT.PURGE.SERVICE',
  '$JS.API.SERVER.REMOVE',
  '$SYS.REQ.SERVER.PING.CONFIG',
];
/** Requests that no user but the archivist may send, and who has all roles. */
const purges = ['$JS.API.STREAM.PURGE.EVENTS', '$JS.API.STREAM.PURGE.PUBLIC'];
/** Operator requests that change or create streams, or read all messages at once. */
const streams = [
  '$JS.API.STREAM.RESTORE.EVENTS',
  '$JS.API.STREAM.SNAPSHOT.EVENTS',
  '$JS.API.STREAM.UPDATE.EVENTS',
  '$JS.API.STREAM.UPDATE.TIMERS',
  '$JS.API.STREAM.CREATE.MINE',
];
const work = {
  provisioner: [
    'evt.acme.profile.prf_1.version-saved',
    '$JS.API.CONSUMER.MSG.NEXT.EVENTS.provisioner',
    '$JS.API.CONSUMER.DELETE.EVENTS.provisioner',
    '$JS.API.CONSUMER.CREATE.EVENTS.provisioner',
    '$JS.ACK.EVENTS.provisioner.1.1.1.1.1',
  ],
  timekeeper: [
    '$JS.API.CONSUMER.MSG.NEXT.EVENTS.timekeeper',
    '$JS.API.CONSUMER.DELETE.EVENTS.timekeeper',
    '$JS.API.CONSUMER.MSG.NEXT.TIMERS.timekeeper',
    '$JS.ACK.EVENTS.timekeeper.1.1.1.1.1',
    '$JS.ACK.TIMERS.timekeeper.1.1.1.1.1',
    '$JS.API.STREAM.PURGE.TIMERS',
  ],
};
const timers = ['tmr.acme.ses_1.expiry', 'tmr.fired.acme.ses_1.expiry'];
const leases = ['$KV.leases.srv_1', '$JS.API.STREAM.PURGE.KV_leases'];
/** The API asks, the servers answer. */
const questions = ['ask.screenshot.srv_1', 'ask.files.srv_1'];
/** Objects of a kind, which one role stores. */
const objectsOf = (kind: string) => [`obj.head.${kind}.acme.a`, `obj.chunk.${kind}.acme.a.p.0`];
const ofFiles = objectsOf('files');
const ofBrowsersAlone = ['profiles', 'recordings', 'thumbnails'].flatMap(objectsOf);
const ofCallers = objectsOf('extensions');
const objects = [...ofFiles, ...ofBrowsersAlone, ...ofCallers, '$JS.API.STREAM.PURGE.OBJECTS'];
const tenants = ['pub.acme.session.ses_1.activated', 'live.evt.acme.session.ses_1.activated'];
const everybody = [...ruin, '_INBOX.somebody', 'anything.else', 'live.fleet.server.srv_1.joined'];

/** No user may publish or subscribe to another user's inbox. */
const inboxes = (me: NatsUser) =>
  natsUsers.filter((user) => user !== me).map((user) => `_INBOX_${user}.x`);

const forbidden: Record<NatsUser, string[]> = {
  api: [
    ...ofBrowsersAlone,
    ...allBut(
      ...['requested', 'extended', 'access-rotated', 'accessed', 'updated'],
      ...['stop-requested', 'stopped'],
      ...[...handoff, 'share-created', 'share-revoked'],
    ),
    ...fleet,
    ...work.provisioner,
    ...work.timekeeper,
    ...timers,
    ...leases,
    ...streams,
    // Of servers it may append only that an operator drains them.
    ...['left', 'lost', 'pool-resized', 'drained'].map((type) => `fleet.server.srv_1.${type}`),
    'retry.PUBLIC.x',
    '$JS.API.STREAM.MSG.DELETE.PUBLIC',
  ],
  projector: [
    ...objects,
    ...questions,
    ...allBut(),
    ...money,
    ...people,
    ...fleet,
    ...work.provisioner,
    ...work.timekeeper,
    ...timers,
    ...leases,
    ...tenants,
    ...streams,
    '$JS.API.STREAM.CREATE.EVENTS',
  ],
  provisioner: [
    ...ofCallers,
    ...questions,
    ...allBut('assigned', 'requeued', 'activated', ...profile, ...filed, ...ends),
    ...money,
    ...people,
    ...work.timekeeper,
    ...timers,
    ...tenants,
    ...streams,
    'parked.view.1',
    '$JS.API.STREAM.CREATE.EVENTS',
  ],
  gateway: [
    ...objects,
    ...questions,
    ...allBut('accessed', 'share-used'),
    ...money,
    ...people,
    ...fleet,
    ...work.provisioner,
    ...work.timekeeper,
    ...timers,
    ...leases,
    ...tenants,
    ...streams,
    'parked.view.1',
    '$JS.API.STREAM.CREATE.EVENTS',
  ],
  timekeeper: [
    ...objects,
    ...questions,
    ...allBut('queued', 'expiry-warning', 'handoff-expired', 'profile-not-saved', ...ends),
    ...money,
    ...people,
    ...fleet,
    ...work.provisioner,
    'tmr.fired.acme.ses_1.expiry',
    ...leases,
    ...tenants,
    ...streams,
    'parked.view.1',
    '$JS.API.STREAM.CREATE.EVENTS',
  ],
  archivist: [
    ...ofFiles,
    ...ofBrowsersAlone,
    ...ofCallers,
    ...questions,
    ...allBut(),
    ...money,
    ...people,
    ...fleet,
    ...work.provisioner,
    ...work.timekeeper,
    ...timers,
    ...tenants,
    ...streams,
    'parked.view.1',
    '$JS.API.STREAM.CREATE.EVENTS',
    '$JS.API.STREAM.MSG.DELETE.PUBLIC',
  ],
  operator: [
    ...objects,
    ...questions,
    ...allBut(),
    'evt.acme.ledger.slot-reserved',
    ...fleet,
    ...timers,
    ...leases,
    ...tenants,
    '$JS.API.CONSUMER.MSG.NEXT.EVENTS.provisioner',
    '$JS.ACK.EVENTS.provisioner.1.1.1.1.1',
  ],
  service: ['tmr.fired.acme.ses_1.expiry', ...streams.filter((name) => !/CREATE/.test(name))],
};

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
    const others = ['archivist', 'service'].includes(user) ? [] : purges;
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
  using _ = createJetStreamScreenshots(other).serve('srv_1', async () => picture);
  const asked = { organizationId: 'acme', sessionId: 'ses_1', workloadId: 'wl_1' };
  const question = { ...asked, maxWidth: 640, known: [] };
  const ask = () => createJetStreamScreenshots(one).ask('srv_1', question);
  await eventually(async () => (await ask()).kind === 'image', 'it is answered');
});

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
    expect(await truncation.canTruncate()).toBe(true);
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
  await nc.request('$JS.API.STREAM.INFO.EVENTS', '', { timeout: 10_000 });
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

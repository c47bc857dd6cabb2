import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamAccounts } from '#src/kernel/objects/jetstream/jetstream-accounts.ts';
import { withAccounts } from '#src/kernel/objects/owned-objects.ts';
import { createJetStreamObjectStore } from '#src/kernel/objects/jetstream/jetstream-object-store.ts';
import {
  startNatsWithRoles,
  type NatsUser,
  type NatsWithRoles,
} from '#test/support/servers/nats-roles.ts';

/** What users of deploy/nats.conf may do with objects; nats-permissions.test.ts has the rest. */

let nats: NatsWithRoles;
beforeAll(async () => {
  nats = await startNatsWithRoles();
});
afterAll(() => nats[Symbol.asyncDispose]());

const inboxOf = (user: NatsUser) => ({ inboxPrefix: `_INBOX_${user}` });

test.each([
  ['api', 'extensions'],
  ['api', 'files'],
  ['provisioner', 'files'],
  ['provisioner', 'profiles'],
  ['provisioner', 'recordings'],
  ['provisioner', 'thumbnails'],
  ['service', 'extensions'],
] as const)('%s may store %s, and the archivist sweep them', async (user, kind) => {
  await using maker = await connectJetStream({ url: nats.urlOf('service'), ...inboxOf('service') });
  const other = { makesStreams: false, awaitsStreams: true };
  await using storing = await connectJetStream({
    ...{ url: nats.urlOf(user), ...other, ...inboxOf(user) },
  });
  await using sweeping = await connectJetStream({
    ...{ url: nats.urlOf('archivist'), ...other, ...inboxOf('archivist') },
  });
  const [mine, theirs] = [storing, sweeping].map((of) =>
    withAccounts(createJetStreamObjectStore(of), createJetStreamAccounts(of), {
      organizationMaxBytes: null,
      onFailure: (error) => {
        throw error;
      },
    }),
  );
  const key = `${kind}/acme/one`;
  async function* body() {
    yield Buffer.alloc(300_000, 1);
  }
  for (const _ of ['stored', 'replaced']) await mine?.put(key, body());
  const found = await mine?.get(key);
  expect(Buffer.concat(await Array.fromAsync(found?.body ?? []))).toHaveLength(300_000);
  const listed = await Array.fromAsync(theirs?.list(`${kind}/`) ?? []);
  expect(listed).toEqual([found?.object]);
  await mine?.remove(key);
  await mine?.put(key, body());
  expect(await theirs?.removeAll(`${kind}/acme/`)).toBe(1);
  expect(await theirs?.removeLeftovers()).toBe(0);
  expect(await createJetStreamAccounts(sweeping).read('acme')).toMatchObject({
    stored: 0,
    puts: {},
  });
  expect(await theirs?.recount()).toBe(0);
  const query = { subjects_filter: '>', deleted_details: false, offset: 0 };
  const { state } = await maker.jsm.streams.info('OBJECTS', query);
  expect(Object.keys(state.subjects ?? {})).toEqual(['obj.account.acme']);
});

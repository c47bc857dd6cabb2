import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { settle, type Account } from '#src/kernel/objects/accounts/account.ts';
import type { Accounts } from '#src/kernel/objects/accounts/accounts.ts';
import { createMemoryAccounts } from '#src/kernel/objects/accounts/accounts.memory.ts';
import { createJetStreamAccounts } from '#src/kernel/objects/jetstream/jetstream-accounts.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';

/** The accounts that processes share: none loses what another one has changed. */

let nats: RealNats;
const connections: JetStreamConnection[] = [];
beforeAll(async () => {
  nats = await startNats();
  for (const _ of ['one', 'other']) connections.push(await connectJetStream({ url: nats.url }));
});
afterAll(async () => {
  for (const one of connections) await one[Symbol.asyncDispose]();
  await nats[Symbol.asyncDispose]();
});

const memory = createMemoryAccounts();
const adapters: { adapter: string; open: () => Accounts[] }[] = [
  { adapter: 'memory', open: () => [memory, memory] },
  { adapter: 'JetStream', open: () => connections.map((one) => createJetStreamAccounts(one)) },
];

const NONE: Account = { stored: 0, puts: {}, changes: 0 };
const add = (bytes: number) => (account: Account | null) =>
  settle(account ?? NONE, '', bytes, Date.now());

describe.each(adapters)('accounts in $adapter', ({ open }) => {
  test('changes of several processes at once are all made', async () => {
    const organization = freshId('acme');
    const processes = open();
    const changes = processes.flatMap((one) =>
      Array.from({ length: 30 }, () => one.change(organization, add(7))),
    );
    await Promise.all(changes);
    for (const one of processes)
      expect(await one.read(organization)).toEqual({ stored: 60 * 7, puts: {}, changes: 60 });
  });

  test('an account is there once it was changed, and is left as it is by no change', async () => {
    const organization = freshId('acme');
    const [accounts] = open() as [Accounts];
    expect(await accounts.read(organization)).toBeNull();
    expect(await accounts.change(organization, () => null)).toBeNull();
    expect(await accounts.organizations()).not.toContain(organization);
    const changed = await accounts.change(organization, add(1));
    expect(changed).toEqual({ stored: 1, puts: {}, changes: 1 });
    expect(await accounts.change(organization, () => null)).toBeNull();
    expect(await accounts.read(organization)).toEqual(changed);
    expect(await accounts.organizations()).toContain(organization);
  });
});

test('a change whose answer was lost is made once', async () => {
  const organization = freshId('acme');
  const [connection] = connections as [JetStreamConnection];
  const accounts = createJetStreamAccounts(connection);
  const { js } = connection;
  const publish = js.publish.bind(js);
  let lost = 0;
  js.publish = async (...asked) => {
    const answer = await publish(...asked);
    lost += 1;
    if (lost === 1) return publish(...asked);
    return answer;
  };
  try {
    expect(await accounts.change(organization, add(7))).toMatchObject({ stored: 7 });
  } finally {
    js.publish = publish;
  }
  expect(lost).toBe(1);
  expect(await accounts.read(organization)).toMatchObject({ stored: 7, changes: 1 });
});

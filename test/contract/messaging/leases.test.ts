import { describe, expect, test } from 'vitest';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamLeases } from '#src/kernel/messaging/jetstream/jetstream-leases.ts';
import { freshId } from '#test/support/events.fixture.ts';
import {
  leasesRules,
  leasesTimes,
  memoryLeases,
  realLeases,
} from '#test/support/messaging/leases-suite.ts';
import { natsServers } from '#test/support/servers/containers.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

describe.each(realLeases)('leases ($adapter)', (adapter) => leasesRules(adapter));
describe.each(memoryLeases)('leases ($adapter)', (memory) => {
  const time = useVirtualTime();
  leasesRules(memory, time);
  leasesTimes(memory, time);
});

describe.each(natsServers)('a renewal on JetStream in a $where', ({ start }) => {
  test('is one message, which counts even where its answer is read too late', async () => {
    await using nats = await start();
    await using connection = await connectJetStream({ url: nats.url });
    await using late = await connectJetStream({ url: nats.url });
    const [leases, other] = await Promise.all(
      [connection, late].map((one) => createJetStreamLeases(one, { leaseMs: 600_000 })),
    );
    const name = freshId('server');
    expect(await leases?.acquire(name, 'one')).toBe(true);
    const before = connection.nc.stats().outMsgs;
    expect(await leases?.acquire(name, 'one')).toBe(true);
    expect(connection.nc.stats().outMsgs - before).toBe(1);
    // An owner's other process has renewed it meanwhile: the revision is read again.
    expect(await other?.acquire(name, 'one')).toBe(true);
    expect(await leases?.acquire(name, 'one')).toBe(true);
    expect(await other?.acquire(name, 'two')).toBe(false);
  });
});

import * as fc from 'fast-check';
import { expect, it, test } from 'vitest';
import { egressHostsMax, type HostTraffic } from '#events/egress.ts';
import { add, addTraffic, nothing, topOf } from '#src/kernel/domain/egress/traffic.ts';
import { createTrafficCount } from '#src/features/egress/count-traffic.ts';
import { runs } from '#test/support/seeds/seeds.ts';

const count = fc.integer({ min: 0, max: 1_000_000 });
const host: fc.Arbitrary<HostTraffic> = fc.record({
  host: fc.integer({ min: 0, max: 60 }).map((number) => `h${number}.example.com`),
  connections: count,
  bytesSent: count,
  bytesReceived: count,
  refused: count,
});
const record = fc
  .uniqueArray(host, { selector: (one) => one.host, maxLength: 60 })
  .map((hosts) => topOf(hosts));

it('loses no count and stays bounded, however many hosts there are', () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 5 }), (records) => {
      const all = records.reduce(
        (sum, { hosts, others }) => hosts.reduce(add, add(sum, others)),
        nothing,
      );
      const [first, ...more] = records;
      const state = more.reduce(addTraffic, addTraffic(undefined, first ?? topOf([])));
      expect(state.hosts.length).toBeLessThanOrEqual(egressHostsMax);
      expect(state.hosts.reduce(add, state.others)).toEqual(all);
      expect(new Set(state.hosts.map((one) => one.host)).size).toBe(state.hosts.length);
    }),
    { numRuns: runs(100) },
  );
});

it('is counted by host between two records', () => {
  const traffic = createTrafficCount();
  expect(traffic.take()).toBeNull();
  traffic.connected('a.example.com');
  traffic.transferred('a.example.com', { bytesSent: 10, bytesReceived: 200 });
  traffic.refused('b.example.com', 'denied');
  traffic.refused('b.example.com', 'not_allowed');
  expect(traffic.take()).toEqual({
    hosts: [
      { host: 'b.example.com', ...nothing, refused: 2, lastRefusal: 'not_allowed' },
      { host: 'a.example.com', connections: 1, bytesSent: 10, bytesReceived: 200, refused: 0 },
    ],
    others: nothing,
  });
  expect(traffic.take()).toBeNull();
});

test('hosts that a page invents are one sum', () => {
  const traffic = createTrafficCount();
  for (let number = 0; number < 2_000; number += 1)
    traffic.refused(`${number}.example.com`, 'not_allowed');
  const taken = traffic.take();
  expect(taken?.hosts).toHaveLength(egressHostsMax);
  expect(taken?.hosts.reduce(add, taken.others).refused).toBe(2_000);
});

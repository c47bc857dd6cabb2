import { expect, test } from 'vitest';
import { createCountByAddress, type Gatekeeper } from '#src/roles/api/http/admission.ts';

test.each([
  ['2001:db8::1', '2001:db8::2', 2],
  ['2001:db8::1', '2001:db8:0:1::1', 1],
  ['192.0.2.1', '::ffff:192.0.2.1', 2],
  ['192.0.2.1', '192.0.2.2', 1],
])('after %s, a request of %s is number %i', (first, second, number) => {
  const anonymous = { requestsPerMinute: 10, concurrentSessions: 0, credits: 0, queueWeight: 1 };
  const count = createCountByAddress({ now: () => 0, anonymous } as unknown as Gatekeeper);
  count(first);
  expect(10 - count(second).remaining).toBe(number);
});

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startEviction, type IsAllowed } from '#src/roles/feed/eviction.ts';
import type { Subscriber } from '#src/roles/feed/subscriber.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

function stream() {
  const ended: string[] = [];
  const subscriber = {
    subscription: { organizationId: 'acme' },
    fullSince: () => null,
    end: (reason: string) => void ended.push(reason),
  } as unknown as Subscriber;
  return { subscriber, ended };
}

test('the streams are checked while there are some', async () => {
  const streams = new Map<Subscriber, IsAllowed>();
  using eviction = startEviction(streams);
  expect(vi.getTimerCount()).toBe(0);
  const { subscriber, ended } = stream();
  streams.set(subscriber, () => false);
  eviction.begin();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(ended).toEqual(['credential_revoked']);
  streams.clear();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(vi.getTimerCount()).toBe(0);
});

test('a stream that opens soon after its credential was revoked is checked at the next tick', async () => {
  const streams = new Map<Subscriber, IsAllowed>();
  using eviction = startEviction(streams);
  eviction.recheck('acme');
  await vi.advanceTimersByTimeAsync(1_000);
  const { subscriber, ended } = stream();
  streams.set(subscriber, () => false);
  eviction.begin();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(ended).toEqual(['credential_revoked']);
});

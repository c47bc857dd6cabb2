import { expect, test } from 'vitest';
import { createClient } from '#src/apps/client/client.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

test('an aborted create of a service that says nothing ends within 40 s', async () => {
  const asked: string[] = [];
  const fetch = (_: unknown, { method = '', signal }: RequestInit = {}) =>
    new Promise<Response>((_resolve, reject) => {
      asked.push(method);
      signal?.addEventListener('abort', () => reject(signal.reason as Error));
    });
  const client = createClient({ url: 'http://service', apiKey: 'bss_acme_key', fetch });
  const stop = new AbortController();
  const creating = client.sessions.create({}, { signal: stop.signal });
  const begin = Date.now();
  stop.abort(new Error('enough'));
  await expect(creating).rejects.toThrow('enough');
  expect(asked).toEqual(['POST', 'POST']);
  expect(Date.now() - begin).toBeLessThanOrEqual(40_000);
});

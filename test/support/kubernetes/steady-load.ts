import { expect } from 'vitest';
import { eventually } from '#test/support/service/service.ts';
import type { Release } from './release.ts';

const RATE_PER_MINUTE = 20;
const WITHIN_MS = 300_000;

/** Creates sessions at a steady rate and stops each; what became of them, and the refusals. */
export async function underLoad(release: Release, work: () => Promise<void>) {
  const acknowledged: string[] = [];
  const refusedAt: number[] = [];
  const over = new AbortController();
  const pauseMs = 60_000 / RATE_PER_MINUTE;
  const load = (async () => {
    while (!over.signal.aborted) {
      const next = new Promise((resolve) => setTimeout(resolve, pauseMs));
      const key = crypto.randomUUID();
      const headers = { 'idempotency-key': key, prefer: 'respond-async' };
      const created = await release
        .request('POST', '/api/sessions', { duration: '2m' }, headers)
        .catch(() => null);
      if (created === null || created.status >= 500) refusedAt.push(Date.now());
      else {
        acknowledged.push(created.body.id);
        setTimeout(
          () =>
            void release.request('DELETE', `/api/sessions/${created.body.id}`).catch(() => null),
          pauseMs,
        );
      }
      await next;
    }
  })();
  await work();
  over.abort();
  await load;
  return { acknowledged, refusedSeconds: (refusedAt.length * pauseMs) / 1000 };
}

/** Each acknowledged session is known once, and ends with none of its browsers left. */
export async function expectWhole(
  release: Release,
  acknowledged: readonly string[],
): Promise<void> {
  expect(new Set(acknowledged).size).toBe(acknowledged.length);
  for (const id of acknowledged) {
    const hasEnded = async () => {
      const { status, body } = await release.request('GET', `/api/sessions/${id}`);
      return status === 200 && ['stopped', 'failed'].includes(body.status);
    };
    await eventually(hasEnded, `${id} has ended`, WITHIN_MS);
  }
  release.bss('audit', 'ledger');
  const hasNoSession = async () =>
    release.ofBrowsers('get', 'pods', '-l', 'browser-session-service/session', '-o', 'name') === '';
  await eventually(hasNoSession, 'no browser of a session is left', WITHIN_MS);
}

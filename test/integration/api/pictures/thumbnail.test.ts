import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { thumbnailKey } from '#src/kernel/domain/session/thumbnail.ts';
import { eventually } from '#test/support/service/service.ts';
import { FILES_RETAIN_MS, startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** The last pictures of ended sessions over the API; they are stored by the test. */

const { beforeAll, afterAll } = useVirtualTime();

const JPEG = Buffer.from('ffd8ffe0', 'hex');

let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app?.[Symbol.asyncDispose]());

async function newSession(): Promise<string> {
  return (await app.request('POST', '/api/sessions', {})).body.id;
}
async function stop(id: string): Promise<void> {
  await app.request('DELETE', `/api/sessions/${id}`);
  await eventually(
    async () => (await app.request('GET', `/api/sessions/${id}`)).body.status === 'stopped',
    'the session has stopped',
  );
}
async function store(id: string, picture = JPEG): Promise<void> {
  async function* body() {
    yield picture;
  }
  await app.objects.put(thumbnailKey({ organizationId: 'acme', id }), body());
}
const ask = (id: string, headers: Record<string, string> = {}) =>
  app.download(`/api/sessions/${id}/thumbnail`, headers);
const errorOf = ({ status, bytes }: { status: number; bytes: Buffer }) =>
  `${status} ${(JSON.parse(bytes.toString()) as { error: string }).error}`;

describe('the thumbnail of an ended session', () => {
  let id: string;
  beforeAll(async () => {
    id = await newSession();
    await store(id);
    await stop(id);
  });

  it('is a JPEG that a client keeps, asks for each time, and no proxy keeps', async () => {
    const { status, headers, bytes } = await ask(id);
    expect([status, bytes]).toEqual([200, JPEG]);
    expect(headers).toMatchObject({
      'content-type': 'image/jpeg',
      'content-length': '4',
      'cache-control': 'private, no-cache',
      'x-content-type-options': 'nosniff',
    });
    const again = await ask(id, { 'if-none-match': String(headers.etag) });
    expect([again.status, again.bytes.length]).toEqual([304, 0]);
  });

  it('may be seen by viewers of its organization alone', async () => {
    expect((await ask(id, { authorization: 'Bearer viewer' })).status).toBe(200);
    const other = await ask(id, { authorization: 'Bearer other' });
    expect(errorOf(other)).toBe('404 SESSION_NOT_FOUND');
  });
});

it('has a time for clients that do not read it', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => timers.mockRestore());
  const id = await newSession();
  await store(id, Buffer.concat([JPEG, Buffer.alloc(256 * 1024 - JPEG.length)]));
  await stop(id);
  expect((await ask(id)).bytes).toHaveLength(256 * 1024);
  expect(timers.mock.calls.map(([, ms]) => ms)).toContain(124_000);
});

it('is of no session that is active, that has none, or that is not known', async () => {
  const id = await newSession();
  await store(id);
  expect(errorOf(await ask(id))).toBe('404 THUMBNAIL_NOT_FOUND');
  const without = await newSession();
  await stop(without);
  expect(errorOf(await ask(without))).toBe('404 THUMBNAIL_NOT_FOUND');
  for (const unknown of ['ses_none', '*', 'a.b'])
    expect(errorOf(await ask(unknown))).toBe('404 SESSION_NOT_FOUND');
});

it('is read until FILES_RETAIN after the end, though it is swept later', async () => {
  const id = await newSession();
  await store(id);
  await stop(id);
  expect((await ask(id)).status).toBe(200);
  app.pass(FILES_RETAIN_MS + 1_000);
  expect(errorOf(await ask(id))).toBe('404 THUMBNAIL_NOT_FOUND');
});

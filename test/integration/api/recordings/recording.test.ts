import { createHash } from 'node:crypto';
import { inflateSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, test, vi } from 'vitest';
import { createFramebuffer } from '#src/features/recordings/framebuffer.ts';
import { readSegment } from '#src/features/recordings/segment-format.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';

/** Recordings over the API; the browsers are simulated, and their screens have one colour. */

type Segment = { name: string; sha256: string; bytes: number; full: boolean; recorded: boolean };
type Recording = { segments: Segment[]; gaps: object[]; events: { type: string }[] };

let app: Awaited<ReturnType<typeof startApp>>;
let apiUrl: string;
let id: string;
let plain: string;
beforeAll(async () => {
  app = await startApp();
  apiUrl = await app.listen();
  id = (await app.request('POST', '/api/sessions', { record: true })).body.id;
  plain = (await app.request('POST', '/api/sessions', {})).body.id;
});
afterAll(() => app?.[Symbol.asyncDispose]());

const ask = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${apiUrl}/api/sessions/${path}`, { headers: { authorization: 'Bearer any', ...headers } });
const index = async () => (await (await ask(`${id}/recording`)).json()) as Recording;
const errorOf = async (response: Response) => {
  const { error } = (await response.json()) as { error: string };
  return `${response.status} ${error}`;
};

describe('the recording of a session', () => {
  it('has its first segment while the session is active', async () => {
    const found = await vi.waitFor(
      async () => {
        const recording = await index();
        expect(recording.segments).toHaveLength(1);
        return recording;
      },
      { timeout: 60_000, interval: 100 },
    );
    expect(found).toMatchObject({ session_id: id, ended_at: null, gaps: [], chain: null });
    expect(found.segments[0]).toMatchObject({ number: 1, full: true, recorded: false });
    expect(found.events.map(({ type }) => type)).toEqual(['session.activated']);
  });

  it('is the picture of the screen, in bytes that a client may keep', async () => {
    const { name, sha256, bytes } = (await index()).segments[0] as Segment;
    const response = await ask(`${id}/recording/${name}`);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'cache-control': 'private, max-age=86400, immutable',
      'content-length': `${bytes}`,
      etag: `"${sha256}"`,
    });
    const got = Buffer.from(await response.arrayBuffer());
    expect(createHash('sha256').update(got).digest('hex')).toBe(sha256);
    const { width, height, messages } = readSegment(inflateSync(got));
    const shown = createFramebuffer();
    shown.resize(width, height);
    for (const message of messages) shown.apply(message.bytes);
    expect([width, height, ...shown.pixels.subarray(-4)]).toEqual([
      1280, 800, 0x33, 0x66, 0x99, 255,
    ]);
    const again = await ask(`${id}/recording/${name}`, { 'if-none-match': `"${sha256}"` });
    expect([again.status, await again.text()]).toEqual([304, '']);
  });

  it('may be seen by viewers of its organization alone, and is no use of the session', async () => {
    const { name } = (await index()).segments[0] as Segment;
    const by = (bearer: string) => ({ authorization: `Bearer ${bearer}` });
    expect((await ask(`${id}/recording`, by('viewer'))).status).toBe(200);
    expect((await ask(`${id}/recording/${name}`, by('viewer'))).status).toBe(200);
    expect(await errorOf(await ask(`${id}/recording`, by('other')))).toBe('404 SESSION_NOT_FOUND');
    expect(await errorOf(await ask(`${id}/recording/${name}`, by('other')))).toBe(
      '404 SESSION_NOT_FOUND',
    );
    const session = await app.request('GET', `/api/sessions/${id}`);
    expect(session.body).toMatchObject({ record: true, last_accessed_at: null });
  });

  it('is proved by the session’s events once it has ended', async () => {
    await app.request('DELETE', `/api/sessions/${id}`);
    const recording = await vi.waitFor(
      async () => {
        const found = (await (await ask(`${id}/recording`)).json()) as { ended_at: string | null };
        expect(found.ended_at).not.toBeNull();
        return found;
      },
      { timeout: 60_000, interval: 50 },
    );
    expect(recording).toMatchObject({
      segments: [{ number: 1, recorded: true }],
      gaps: [],
      chain: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });
});

test.each([
  ['of a session that was not recorded', () => `${plain}/recording`],
  ['of no segment', () => `${id}/recording/00000009-1-2-f`],
  ['of what is no name', () => `${id}/recording/..%2F..%2Ffiles`],
])('a recording %s is 404', async (_, path) => {
  expect(await errorOf(await ask(path()))).toBe('404 RECORDING_NOT_FOUND');
});

test('a recording of what is no session is 404', async () => {
  const answer = await ask('..%2Fx/recording/00000001-1-2-f');
  expect(await errorOf(answer)).toBe('404 SESSION_NOT_FOUND');
});

test('a headless session cannot be recorded', async () => {
  const answer = await app.request('POST', '/api/sessions', { record: true, headless: true });
  expect(answer.body).toMatchObject({ error: 'INVALID_REQUEST', context: { record: true } });
});

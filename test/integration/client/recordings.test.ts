import { createHash } from 'node:crypto';
import { inflateSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient, type Client, type LiveSession } from '#src/apps/client/client.ts';
import { readSegment } from '#src/features/recordings/segment-format.ts';
import { refuse, startScripted } from '#test/support/clients/scripted-service.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { eventually } from '#test/support/service/service.ts';

/** Recordings by the client; the browsers are simulated, and their screens have one colour. */

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

describe('the recording of a session', () => {
  let app: Awaited<ReturnType<typeof startApp>>;
  let client: Client;
  let session: LiveSession;
  beforeAll(async () => {
    app = await startApp();
    client = createClient({ url: await app.listen(), apiKey: 'any', retriesMax: 0 });
    session = await client.sessions.create({ record: true });
    const isStored = async () => (await session.recording()).segments.length > 0;
    await eventually(isStored, 'the first segment is stored');
  });
  afterAll(() => app?.[Symbol.asyncDispose]());

  it('is an index of segments, whose bytes are read', async () => {
    const recording = await client.sessions.recording(session.id);
    expect(recording).toMatchObject({ session_id: session.id, ended_at: null, gaps: [] });
    const [segment] = recording.segments;
    if (segment === undefined) throw new Error('there is no segment');
    const content = await session.recordingSegment(segment.name);
    const { name, bytes, sha256: hash } = segment;
    expect(content).toMatchObject({ name, bytes, sha256: hash });
    const read = await content.read();
    expect(sha256(read)).toBe(hash);
    expect(readSegment(inflateSync(read))).toMatchObject({ full: true, width: 1280, height: 800 });
  });

  it('has a stream for each segment', async () => {
    const [segment] = (await session.recording()).segments;
    const { body } = await session.recordingSegment(segment?.name ?? '');
    const read = Buffer.concat(await Array.fromAsync(body));
    expect(sha256(read)).toBe(segment?.sha256);
  });

  it('that there is not is an error', async () => {
    const { sessions } = client;
    const missing = { error: 'RECORDING_NOT_FOUND', code: 404 };
    for (const name of ['00000009-1-2-f', '..', '../files'])
      await expect(sessions.recordingSegment(session.id, name)).rejects.toMatchObject(missing);
    const plain = await sessions.create();
    await expect(plain.recording()).rejects.toMatchObject(missing);
    await expect(sessions.recording('ses_none')).rejects.toMatchObject({
      error: 'SESSION_NOT_FOUND',
    });
  });
});

describe('the bytes of a segment', () => {
  const BYTES = Buffer.from('the bytes of a segment');
  const HASH = sha256(BYTES);
  /** All of it, whatever was asked for; the connection breaks off after so many bytes. */
  function whole(count = BYTES.length) {
    return (response: import('node:http').ServerResponse) => {
      response.writeHead(200, { etag: `"${HASH}"`, 'content-length': BYTES.length });
      if (count === BYTES.length) return void response.end(BYTES);
      response.write(BYTES.subarray(0, count));
      setImmediate(() => setImmediate(() => response.destroy()));
    };
  }

  it('go on where they were after lost connections, though each answer has all of them', async () => {
    await using service = await startScripted([whole(10), whole(4), whole(15), whole()]);
    const content = await service.client.sessions.recordingSegment('ses_1', '00000001-1-2-f');
    expect(Buffer.from(await content.read()).toString()).toBe(BYTES.toString());
    expect(service.asked.map(({ url, headers }) => [url, headers.range])).toEqual(
      [undefined, 'bytes=10-', 'bytes=10-', 'bytes=15-'].map((range) => [
        '/api/sessions/ses_1/recording/00000001-1-2-f',
        range,
      ]),
    );
  });

  it('of one that was removed meanwhile are an error', async () => {
    await using service = await startScripted([whole(10), refuse(404, 'RECORDING_NOT_FOUND')]);
    const content = await service.client.sessions.recordingSegment('ses_1', '00000001-1-2-f');
    await expect(content.read()).rejects.toMatchObject({ error: 'RECORDING_NOT_FOUND' });
  });
});

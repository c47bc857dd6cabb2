import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DownloadRefused, NoAnswer } from '#src/apps/client/client.ts';
import { scratchDir } from '#test/support/scratch.ts';
import {
  hangUp,
  json,
  refuse,
  startScripted,
  stream,
} from '#test/support/clients/scripted-service.ts';

type Answer = Parameters<typeof startScripted>[0][number];

const OPENING = 'retry: 1\nid: 7\n';
const CONTENT = 'the bytes of a file, ä – 漢';
const BYTES = Buffer.from(CONTENT);
const SHA256 = createHash('sha256').update(BYTES).digest('hex');
const FILE = { name: 'a.txt', bytes: BYTES.length, sha256: SHA256, origin: 'upload' };

/** The content from a byte on; the connection breaks off after so many. */
function content(from: number, count = BYTES.length - from, sha256 = SHA256): Answer {
  return (response) => {
    const left = BYTES.subarray(from);
    const status = from === 0 ? 200 : 206;
    response.writeHead(status, { etag: `"${sha256}"`, 'content-length': left.length });
    if (count === left.length) return void response.end(left);
    response.write(left.subarray(0, count));
    setImmediate(() => setImmediate(() => response.destroy()));
  };
}

function event(sequence: number, type: string, data: object): string {
  const body = JSON.stringify({ sequence: String(sequence), type, data });
  return `id: ${sequence}\nevent: ${type}\ndata: ${body}\n\n`;
}
const added = (sequence: number, data: object) =>
  event(sequence, 'session.file-added', { origin: 'download', ...data });
const refused = (sequence: number, data: object) =>
  event(sequence, 'session.file-refused', { origin: 'download', ...data });

describe('the content of a file', () => {
  it('goes on where it was after lost connections', async () => {
    await using service = await startScripted([
      hangUp,
      content(0, 10),
      hangUp,
      content(10, 3),
      refuse(503, 'UNAVAILABLE', { 'retry-after': '0' }),
      content(13),
    ]);
    const file = await service.client.sessions.downloadFile('ses_1', 'ä b.txt');
    expect(file).toMatchObject({ name: 'ä b.txt', bytes: BYTES.length, sha256: SHA256 });
    expect(Buffer.from(await file.read()).equals(BYTES)).toBe(true);
    expect(service.asked[0]?.url).toBe('/api/sessions/ses_1/files/%C3%A4%20b.txt');
    expect(service.asked.map(({ headers }) => headers.range)).toEqual([
      undefined,
      undefined,
      'bytes=10-',
      'bytes=10-',
      'bytes=13-',
      'bytes=13-',
    ]);
    expect(service.asked[3]?.headers['if-range']).toBe(`"${SHA256}"`);
  });

  it('fails if the file was replaced meanwhile', async () => {
    const other = content(0, BYTES.length, '0'.repeat(64));
    await using service = await startScripted([content(0, 10), other]);
    const file = await service.client.sessions.downloadFile('ses_1', 'a.txt');
    await expect(file.read()).rejects.toThrow('replaced');
  });

  it('is written to a path as a whole, or not at all', async () => {
    await using folder = await scratchDir();
    const path = join(folder.path, 'saved.txt');
    await using service = await startScripted([
      content(0, 10),
      content(10),
      content(0, 10),
      refuse(404, 'FILE_NOT_FOUND'),
    ]);
    const { sessions } = service.client;
    await (await sessions.downloadFile('ses_1', 'a.txt')).saveTo(path);
    expect(await readFile(path, 'utf8')).toBe(CONTENT);
    const gone = await sessions.downloadFile('ses_1', 'a.txt');
    await expect(gone.saveTo(path)).rejects.toMatchObject({ error: 'FILE_NOT_FOUND' });
    expect(await readdir(folder.path)).toEqual(['saved.txt']);
  });

  it('lets its connection go where it cannot be written', async () => {
    const closed = Promise.withResolvers<void>();
    const begun: Answer = (response) => {
      response.on('close', closed.resolve);
      response.writeHead(200, { etag: `"${SHA256}"`, 'content-length': BYTES.length });
      response.write(BYTES.subarray(0, 5));
    };
    await using folder = await scratchDir();
    await using service = await startScripted([begun]);
    const file = await service.client.sessions.downloadFile('ses_1', 'a.txt');
    await expect(file.saveTo(join(folder.path, 'no', 'a.txt'))).rejects.toThrow('ENOENT');
    await closed.promise;
  });

  it('of a missing file is an error at once', async () => {
    await using service = await startScripted([refuse(404, 'FILE_NOT_FOUND')]);
    const asked = service.client.sessions.downloadFile('ses_1', '../x');
    await expect(asked).rejects.toMatchObject({ error: 'FILE_NOT_FOUND' });
    expect(service.asked[0]?.url).toBe('/api/sessions/ses_1/files/..%2Fx');
  });
});

describe('an upload', () => {
  it('of a path has the name of its file, and is repeated', async () => {
    await using folder = await scratchDir();
    const path = join(folder.path, 'ä b.txt');
    await writeFile(path, CONTENT);
    await using service = await startScripted([hangUp, json(201, { ...FILE, path: '/d/a.txt' })]);
    const uploaded = await service.client.sessions.uploadFile('ses_1', path);
    expect(uploaded.path).toBe('/d/a.txt');
    for (const { method, url, body, headers } of service.asked) {
      expect([method, url, body]).toEqual([
        'PUT',
        '/api/sessions/ses_1/files/%C3%A4%20b.txt',
        CONTENT,
      ]);
      expect(headers['content-length']).toBe(String(BYTES.length));
    }
    expect(service.asked.length).toBe(2);
  });

  it('takes bytes, blobs and streams, which need a name', async () => {
    const answer = json(201, { ...FILE, path: '/d/a.txt' });
    await using service = await startScripted([answer, answer, answer]);
    const { sessions } = service.client;
    const sources = [new Uint8Array(BYTES), new Blob([BYTES]), new Blob([BYTES]).stream()];
    for (const source of sources) await sessions.uploadFile('ses_1', source, { name: 'a.txt' });
    expect(service.asked.map(({ body }) => body)).toEqual([CONTENT, CONTENT, CONTENT]);
    await expect(sessions.uploadFile('ses_1', new Blob(['x']))).rejects.toThrow('needs a name');
  });

  it('of a stream is sent once', async () => {
    await using service = await startScripted([hangUp, json(201, FILE)]);
    const source = new Blob([BYTES]).stream();
    const asked = service.client.sessions.uploadFile('ses_1', source, { name: 'a.txt' });
    await expect(asked).rejects.toMatchObject({ name: 'NoAnswer' });
    expect(service.asked.length).toBe(1);
  });
});

describe('a download of the browser', () => {
  const playwright = (failure: string | null = null) => ({
    suggestedFilename: () => 'a.txt',
    failure: async () => failure,
    path: async () => '/tmp/playwright-artifacts-1/g-2',
  });

  it('is found by its guid among others of its name, and saved', async () => {
    await using folder = await scratchDir();
    const to = join(folder.path, 'saved.txt');
    const events = [OPENING, added(8, { name: 'a.txt', guid: 'g-1' })];
    await using service = await startScripted([
      stream(events, 'break'),
      stream([OPENING, added(9, { name: 'a (1).txt', guid: 'g-2' })], 'stay'),
      content(0),
    ]);
    const file = await service.client.sessions.saveDownload('ses_1', playwright(), { to });
    expect(file.name).toBe('a (1).txt');
    expect(await readFile(to, 'utf8')).toBe(CONTENT);
    expect(service.asked.at(-1)?.url).toBe('/api/sessions/ses_1/files/a%20(1).txt');
  });

  it('is found by its guid alone, as CDP tells it', async () => {
    const events = [OPENING, added(8, { name: 'b.txt', guid: 'g-9' })];
    await using service = await startScripted([stream(events, 'stay'), content(0)]);
    const download = { guid: 'g-9', suggestedFilename: 'b.txt' };
    const file = await service.client.sessions.saveDownload('ses_1', download);
    expect(Buffer.from(await file.read()).toString()).toBe(CONTENT);
  });

  it('that was refused rejects with the reason', async () => {
    const events = [
      OPENING,
      added(8, { name: 'a.txt', guid: 'g-1' }),
      refused(9, { name: 'a.txt', guid: 'g-2', reason: 'quota' }),
    ];
    await using service = await startScripted([stream(events, 'stay')]);
    const asked = service.client.sessions.saveDownload('ses_1', playwright('canceled'));
    const failure = await asked.catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(DownloadRefused);
    expect(failure).toMatchObject({ reason: 'quota', suggestedFilename: 'a.txt' });
  });

  it('that never comes rejects once the session is over, or the time', async () => {
    const over = [OPENING, event(8, 'session.stopped', {})];
    await using service = await startScripted([stream(over), stream([OPENING], 'stay')]);
    const { sessions } = service.client;
    for (const options of [{}, { waitMs: 200 }]) {
      const asked = sessions.saveDownload('ses_1', playwright(), options);
      await expect(asked).rejects.toBeInstanceOf(DownloadRefused);
    }
  });
});

it('files are listed and removed, and all come as a zip', async () => {
  await using folder = await scratchDir();
  await using service = await startScripted([
    json(200, { files: [FILE] }),
    (response) => void response.writeHead(204).end(),
    (response) => void response.end('zip'),
  ]);
  const { sessions } = service.client;
  expect(await sessions.listFiles('ses_1')).toEqual([FILE]);
  await sessions.removeFile('ses_1', 'a.txt');
  await (await sessions.filesZip('ses_1')).saveTo(join(folder.path, 'all.zip'));
  expect(await readFile(join(folder.path, 'all.zip'), 'utf8')).toBe('zip');
  expect(service.asked.map(({ method, url }) => `${method} ${url}`)).toEqual([
    'GET /api/sessions/ses_1/files',
    'DELETE /api/sessions/ses_1/files/a.txt',
    'GET /api/sessions/ses_1/files.zip',
  ]);
});

it('a stream that is not opened is NoAnswer, as everything else', async () => {
  await using service = await startScripted([hangUp, hangUp]);
  const { sessions, organization } = service.client;
  for (const open of [() => sessions.filesZip('ses_1'), () => organization.exportAudit()])
    await expect(open()).rejects.toThrow(NoAnswer);
});

import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createS3ObjectStore } from '#src/kernel/objects/s3/s3-object-store.ts';

/** An S3 server that is given an object in parts, and falls silent at one of the requests. */

const PART_BYTES = 8 * 1024 ** 2;
const BUCKET = '<Bucket>b</Bucket><Key>k</Key>';
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const xml = (text: string) => (response: ServerResponse) =>
  void response.writeHead(200, { 'content-type': 'application/xml' }).end(text);

/** The requests of such a put, and how a server answers each; the first that is alike counts. */
const requests: [name: string, like: RegExp, answer: (response: ServerResponse) => void][] = [
  [
    'the begin of the upload',
    /^POST .*[?&]uploads/,
    xml(
      `<InitiateMultipartUploadResult>${BUCKET}<UploadId>u1</UploadId>` +
        '</InitiateMultipartUploadResult>',
    ),
  ],
  ['a part', /^PUT .*partNumber=/, (response) => void response.setHeader('etag', '"1"').end()],
  [
    'the end of the upload',
    /^POST .*uploadId=/,
    xml(`<CompleteMultipartUploadResult>${BUCKET}<ETag>"1"</ETag></CompleteMultipartUploadResult>`),
  ],
  ['the copy', /^PUT /, xml('<CopyObjectResult/>')],
];

async function startSilentAt(step: string) {
  const silent = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const asked = `${request.method} ${request.url}`;
      const [name, , answer] = requests.find(([, like]) => like.test(asked)) ?? [];
      if (name === step) silent.resolve();
      else if (answer === undefined) response.writeHead(204).end();
      else answer(response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const store = createS3ObjectStore({
    bucket: 'b',
    region: 'us-east-1',
    endpoint: `http://127.0.0.1:${port}`,
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
  });
  return { store, silent: silent.promise };
}

async function* twoParts() {
  yield Buffer.alloc(PART_BYTES);
  yield Buffer.alloc(PART_BYTES);
}

test.each(requests.map(([name]) => name))(
  'a put ends once it is given up, though the server is silent at %s',
  async (step) => {
    const { store, silent } = await startSilentAt(step);
    const stop = new AbortController();
    const putting = store.put('acme/a', twoParts(), { signal: stop.signal });
    const outcome = expect(putting).rejects.toThrow('given up');
    await silent;
    stop.abort(new Error('given up'));
    await outcome;
  },
  30_000,
);

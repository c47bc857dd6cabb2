import { gunzipSync } from 'node:zlib';
import { expect, it, test } from 'vitest';
import { verdictOnFile } from '#test/support/audit-file.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** GET /api/audit/export: a signed file that anybody can verify. */

const { beforeAll, afterAll } = useVirtualTime();

let app: Awaited<ReturnType<typeof startApp>>;
const PATH = '/api/audit/export';
const other = { authorization: 'Bearer other' };

beforeAll(async () => {
  app = await startApp();
  await app.registerOther();
  for (let count = 0; count < 3; count += 1) await app.request('POST', '/api/sessions');
  await app.request('POST', '/api/sessions', {}, other);
});
afterAll(() => app?.[Symbol.asyncDispose]());

const linesOf = (bytes: Buffer) => bytes.toString().trimEnd().split('\n');

it('is whole, signed by the service’s key, and has the organization’s events alone', async () => {
  const { status, headers, bytes } = await app.download(PATH);
  expect(status).toBe(200);
  expect(headers['content-type']).toBe('application/x-ndjson');
  expect(headers['content-disposition']).toBe('attachment; filename="audit-acme.ndjson"');
  const verdict = await verdictOnFile(bytes);
  expect(verdict).toMatchObject({
    isWhole: true,
    fingerprint: app.signer.fingerprint,
    head: { organization: 'acme', form: 'public', from: null },
  });
  const [, ...records] = linesOf(bytes).map((line) => JSON.parse(line));
  const subjects = records.map(({ record }) => record.subject);
  expect(subjects.every((subject) => subject.startsWith('evt.acme.'))).toBe(true);
  expect(subjects.filter((subject) => subject.endsWith('.requested'))).toHaveLength(3);
  expect(verdict.isWhole && verdict.head.records).toBe(records.length);
});

it('has nothing internal', async () => {
  const { bytes } = await app.download(PATH);
  expect(bytes.toString()).toContain('session.activated');
  expect(bytes.toString()).not.toMatch(/serverIp|"cdp":|"vnc":|fingerprint|"hash":"[^0-9a-f]/);
});

it('is compressed where the client accepts that, to the same records', async () => {
  const to = new Date(app.now()).toISOString();
  const path = `${PATH}?to=${to}`;
  const plain = await app.download(path);
  const packed = await app.download(path, { 'accept-encoding': 'br, gzip' });
  expect([packed.headers['content-encoding'], plain.headers['content-encoding']]).toEqual([
    'gzip',
    undefined,
  ]);
  const bytes = gunzipSync(packed.bytes);
  expect((await verdictOnFile(bytes)).isWhole).toBe(true);
  expect(linesOf(bytes).slice(1)).toEqual(linesOf(plain.bytes).slice(1));
  expect(packed.bytes.length).toBeLessThan(plain.bytes.length);
});

it('has the events of the span alone', async () => {
  const { bytes } = await app.download(`${PATH}?from=2020-01-01&to=2020-01-02`);
  expect(linesOf(bytes)).toHaveLength(1);
  expect(await verdictOnFile(bytes)).toMatchObject({ isWhole: true, head: { records: 0 } });
});

it('is one after the other, also after a HEAD and a refusal', async () => {
  expect((await app.request('HEAD', PATH)).status).toBe(200);
  await app.download(`${PATH}?from=2021&to=2020`);
  for (let count = 0; count < 3; count += 1) expect((await app.download(PATH)).status).toBe(200);
});

test.each(['?from=yesterday', '?from=2026-01-02&to=2026-01-01', '?org=acme'])(
  'refuses %s',
  async (query) => {
    const { status, body } = await app.request('GET', PATH + query);
    expect([status, body.error]).toEqual([400, 'INVALID_REQUEST']);
  },
);

test.each(['viewer', 'member'])('a %s may not', async (role) => {
  const authorization = `Bearer ${role}`;
  const { status, body } = await app.request('GET', PATH, undefined, { authorization });
  expect([status, body.error, body.context]).toEqual([
    ...[403, 'FORBIDDEN', { role, action: 'administer' }],
  ]);
});

test('an admin may', async () => {
  const { status } = await app.download(PATH, { authorization: 'Bearer admin' });
  expect(status).toBe(200);
});

test('another organization gets its own', async () => {
  const { bytes } = await app.download(PATH, other);
  expect(await verdictOnFile(bytes)).toMatchObject({
    isWhole: true,
    head: { organization: 'umbrella' },
  });
  expect(bytes.toString()).not.toContain('evt.acme.');
});

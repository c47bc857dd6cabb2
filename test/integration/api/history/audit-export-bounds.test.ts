import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { encode } from '#events/codec.ts';
import { createAuditExports, type AuditExports } from '#src/features/audit/routes/audit-exports.ts';
import { errors } from '#src/kernel/errors.ts';
import type { RawRecord, RawRecords } from '#src/kernel/event-store/raw-records.ts';
import { recordOf, verdictOnFile } from '#test/support/audit-file.ts';
import { aSession, requested } from '#test/support/events.fixture.ts';
import { eventually } from '#test/support/service/service.ts';

/** How many exports there are at once, and how much of one is read ahead of its client. */

const RECORDS = 20_000;
const BATCH = 500;
const scope = {
  format: 'bss-audit-1',
  log: 'of a test',
  organization: 'acme',
  from: null,
  to: '2026-11-21T00:00:00.000Z',
  after: 0,
  up_to: RECORDS,
} as const;

/** The records of a long log, made as they are read, and how many were. */
function longLog(count: number, record: (sequence: number) => RawRecord) {
  const log = { read: 0, records: { read } satisfies RawRecords };
  async function* read() {
    for (let first = 1; first <= count; first += BATCH) {
      log.read += BATCH;
      yield Array.from({ length: BATCH }, (_, at) => record(first + at));
    }
  }
  return log;
}

const { subject, headers, body } = encode(requested(aSession('acme')));
const storedAt = '2026-11-20T09:30:00.123456789Z';
const stored = {
  subject,
  headers: Object.entries(headers),
  body: new TextDecoder().decode(body),
  storedAt,
};

const signer = { fingerprint: 'none', sign: async () => 'a..b' };
let log: ReturnType<typeof longLog>;
let exports: AuditExports;
let server: ReturnType<typeof serve>;

async function answer(organizationId: string, response: ServerResponse): Promise<void> {
  const made = await exports.open(async () => scope, organizationId, { isGzip: false, response });
  if ('code' in made) response.writeHead(errors[made.code].status).end();
  else made.on('error', () => response.destroy()).pipe(response);
  response.once('close', () => 'code' in made || made.destroy());
}

/** An export for the organization that the path names; the status is that of the refusal. */
function serve() {
  return createServer((request, response) => void answer(String(request.url), response)).listen(
    0,
    '127.0.0.1',
  );
}

const audit = { records: { read: () => log.records.read() }, findSigner: async () => signer };
const limits = { exports: 12, sumMs: 60_000, stallMs: 30_000, exportMs: 60_000 };

beforeEach(async () => {
  exports = createAuditExports({ audit }, limits);
  log = longLog(RECORDS, (sequence) => ({ ...stored, sequence }));
  server = serve();
  await once(server, 'listening');
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function ask(organizationId: string): Promise<IncomingMessage> {
  const { port } = server.address() as AddressInfo;
  const asked = get({ host: '127.0.0.1', port, path: organizationId, agent: false });
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  return answer;
}

it('reads no farther than its client, who gets all in the end', async () => {
  const answer = await ask('/acme');
  await once(answer, 'readable');
  // The first reading is over; of the second only what the buffers on the way hold.
  let [before, looks] = [0, 0];
  await eventually(() => {
    looks = log.read === before && log.read > RECORDS ? looks + 1 : 0;
    before = log.read;
    return looks === 10;
  }, 'the export waits for its client');
  expect(log.read).toBeLessThan(2 * RECORDS - 5 * BATCH);
  const bytes = await buffer(answer);
  expect(bytes.toString().trimEnd().split('\n')).toHaveLength(RECORDS + 1);
  expect(log.read).toBe(2 * RECORDS);
});

it('is one of an organization, and some of a process; a client that leaves makes room', async () => {
  exports = createAuditExports({ audit }, { ...limits, exports: 2 });
  const first = await ask('/acme');
  expect((await ask('/acme')).statusCode).toBe(429);
  const second = await ask('/umbrella');
  expect([first.statusCode, second.statusCode]).toEqual([200, 200]);
  expect((await ask('/third')).statusCode).toBe(503);
  first.destroy();
  await eventually(async () => {
    const answer = await ask('/acme');
    const isOpen = answer.statusCode === 200;
    answer.destroy();
    return isOpen;
  }, 'there is room');
  second.destroy();
});

it('is not kept from others by clients that read nothing', async () => {
  log = longLog(4 * BATCH, (sequence) => ({ ...stored, sequence }));
  const slow = [];
  for (const path of ['/a', '/b', '/c']) slow.push(await ask(path));
  expect(slow.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
  const bytes = await buffer(await ask('/acme'));
  expect(bytes.toString().trimEnd().split('\n')).toHaveLength(4 * BATCH + 1);
  for (const one of slow) one.destroy();
});

it('reads in turns: those that many organizations open at once are all made', async () => {
  log = longLog(BATCH, (sequence) => ({ ...stored, sequence }));
  const paths = Array.from({ length: 6 }, (_, at) => `/org_${at}`);
  const answers = await Promise.all(paths.map(async (path) => buffer(await ask(path))));
  for (const bytes of answers)
    expect(bytes.toString().trimEnd().split('\n')).toHaveLength(BATCH + 1);
});

it.each([{ stallMs: 100 }, { exportMs: 100 }])(
  'is cut off from a client that does not take it in time: %j',
  async (limit) => {
    exports = createAuditExports({ audit }, { ...limits, ...limit });
    const answer = await ask('/acme');
    expect(answer.statusCode).toBe(200);
    await eventually(async () => {
      const next = await ask('/acme');
      next.destroy();
      return next.statusCode === 200;
    }, 'its place is free');
    await expect(buffer(answer)).rejects.toThrow('aborted');
  },
);

it('is cut off from a client that does not take what is left once all is read', async () => {
  exports = createAuditExports({ audit }, { ...limits, exportMs: 1_000 });
  log = longLog(BATCH, (sequence) => ({ ...stored, sequence }));
  // It holds all of the export, and its client takes nothing of that.
  const response = new PassThrough({ highWaterMark: 2 ** 30 });
  await answer('/acme', response as unknown as ServerResponse);
  await eventually(() => response.destroyed, 'it is cut off');
  expect(log.read).toBe(2 * BATCH);
  expect((await ask('/acme')).statusCode).toBe(200);
});

it('is refused where the first reading takes too long', async () => {
  exports = createAuditExports({ audit }, { ...limits, sumMs: 0 });
  expect((await ask('/acme')).statusCode).toBe(503);
});

it('is refused for more records than it may have', async () => {
  // Records that no process can read cost little.
  log = longLog(101_000, (sequence) => recordOf(sequence, 'x'));
  expect((await ask('/acme')).statusCode).toBe(400);
});

it('has no end where the second reading differs from the first', async () => {
  let readings = 0;
  const whole = log;
  log = longLog(BATCH, (sequence) => ({ ...stored, sequence }));
  const { read } = log.records;
  log.records.read = () => {
    readings += 1;
    return readings === 1
      ? read()
      : longLog(2 * BATCH, (sequence) => ({ ...stored, sequence })).records.read();
  };
  const answer = await ask('/acme');
  await expect(buffer(answer)).rejects.toThrow('aborted');
  expect(whole.read).toBe(0);
});

it('shows of an event that no process can read its place alone', async () => {
  log = longLog(BATCH, (sequence) => recordOf(sequence, 'secret'));
  const bytes = await buffer(await ask('/acme'));
  expect(bytes.toString()).not.toContain('secret');
  const [, line = ''] = bytes.toString().split('\n');
  expect(JSON.parse(line).record).toEqual({
    ...{ sequence: 1, storedAt, subject: 'evt.acme.session.ses_1.requested' },
    ...{ headers: [], text: '' },
  });
  // The signature of this test is none.
  expect(await verdictOnFile(bytes)).toMatchObject({ isWhole: false, line: 1 });
});

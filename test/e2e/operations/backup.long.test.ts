import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Manifest } from '#src/features/backup/manifest.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamRawRecords } from '#src/kernel/event-store/jetstream/jetstream-raw-records.ts';
import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { bss, bssWith, json } from '#test/support/clients/command-line.ts';

const WITHIN_MS = 60_000;

type Row = { stream: string; messages: number; last_sequence: number };
/** The data that must be equal after a restore: every stored record, balances, a history. */
type Snapshot = { records: RawRecord[]; statement: unknown; history: unknown[] };

describe('an event store that is backed up, wiped and restored', () => {
  let service: RunningService;
  let folder: string;
  let backup: string;
  let before: Snapshot;
  const ids: string[] = [];
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bss-backup-'));
    backup = join(folder, 'backup');
    service = await startService({ POOL_MIN_IDLE: '0', POOL_MAX: '40' });
    for (let number = 0; number < 12; number += 1) await live(number);
    await json(service, 'credits', 'grant', '--org', 'dev', '--amount', '77');
  });
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  /** Creates a session. By its number it is extended, stopped or left running. */
  async function live(number: number): Promise<void> {
    const { status, body } = await service.request('POST', '/api/sessions', { duration: '2h' });
    expect(status).toBe(201);
    ids.push(body.id);
    const path = `/api/sessions/${body.id}`;
    if (number % 3 === 0) await service.request('POST', `${path}/extend`, { duration: '30m' });
    if (number % 2 === 0) return;
    expect((await service.request('DELETE', path)).status).toBe(200);
    await eventually(
      async () => (await service.request('GET', path)).body.status === 'stopped',
      'it has stopped',
      WITHIN_MS,
    );
  }

  async function snapshotOf(upTo: number): Promise<Snapshot> {
    const url = service.runtime.nats_url;
    await using connection = await connectJetStream({ url, makesStreams: false });
    const range = { after: 0, upTo, organizationId: null };
    const records: RawRecord[] = [];
    for await (const batch of createJetStreamRawRecords(connection).read(range))
      records.push(...batch);
    return {
      records,
      statement: await json(service, 'credits', 'statement', '--org', 'dev', '--to', asOf()),
      history: (await json(service, 'session', 'history', ids[0] ?? '')) as unknown[],
    };
  }
  let moment = '';
  function asOf(): string {
    moment ||= new Date().toISOString();
    return moment;
  }

  it('is written to a folder while the service runs, and only to an empty one', async () => {
    // Compare balances as of a moment before the backup, because the service goes on meanwhile.
    asOf();
    const { streams } = (await json(service, 'backup', '--to', backup)) as { streams: Row[] };
    const events = streams.find(({ stream }) => stream === 'EVENTS');
    expect(events).toMatchObject({ stream: 'EVENTS', messages: events?.last_sequence });
    before = await snapshotOf(events?.last_sequence ?? 0);
    expect(before.records.at(-1)?.sequence).toBe(events?.last_sequence);
    const again = await bss(service, 'backup', '--to', backup, '--json');
    expect(again.code).toBe(1);
    expect(JSON.parse(again.stderr)).toMatchObject({ error: 'UNAVAILABLE' });
  });

  it('is not restored over existing streams, beside a running service, or from an altered file', async () => {
    const env = { DATA_DIR: service.dataDir };
    const running = await bssWith(env, 'restore', '--from', backup);
    expect([running.code, running.stderr]).toEqual([1, expect.stringContaining('use')]);
    await service.end('SIGTERM');
    const over = await bssWith(env, 'restore', '--from', backup);
    expect([over.code, over.stderr]).toEqual([1, expect.stringContaining('never overwrites')]);

    const manifest = JSON.parse(await readFile(join(backup, 'manifest.json'), 'utf8')) as Manifest;
    const events = manifest.streams.find(({ name }) => name === 'EVENTS');
    const path = join(backup, events?.file ?? '');
    const whole = await readFile(path);
    await appendFile(path, 'x');
    const changed = await bssWith(env, 'restore', '--from', backup);
    expect([changed.code, changed.stderr]).toEqual([
      1,
      expect.stringContaining('differs from what'),
    ]);
    await writeFile(path, whole);
  });

  it('has every record, history and balance of before, and takes new sessions', async () => {
    for (const part of ['nats', 'redis'])
      await rm(join(service.dataDir, part), { recursive: true, force: true });
    const restored = await bssWith({ DATA_DIR: service.dataDir }, 'restore', '--from', backup);
    expect([restored.code, restored.stderr]).toEqual([0, '']);
    await service.startAgain();

    const after = await snapshotOf(before.records.length);
    expect(after.records).toEqual(before.records);
    expect(after.statement).toEqual(before.statement);
    // This session ran during the backup: its end is recorded after the restored events.
    expect(after.history.slice(0, before.history.length)).toEqual(before.history);
    // The read model is built again, and equals the event store.
    const listed = await eventually(async () => {
      const { status, body } = await service.request('GET', '/api/sessions?limit=100');
      return status === 200 && (body.total as number);
    }, 'the list is current');
    expect(listed).toBe(ids.length);
    await json(service, 'projections', 'verify');
    const answer = await service.request('POST', '/api/sessions', {});
    expect([answer.status, answer.body.status]).toEqual([201, 'active']);
    // Browsers that ran are gone with the machine: their sessions end, and their credits are
    // released.
    const { ledger, sessions } = await auditLog(service);
    expect(sessions.size).toBe(ids.length + 1);
    expect(ledger).not.toBeNull();
  });
});

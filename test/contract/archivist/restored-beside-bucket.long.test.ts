/** The sweep after a restore of an older backup of the events beside the bucket of later. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ProfileEvent } from '#events/profile.ts';
import {
  adoptObjects,
  AnotherEventStore,
  requireOwnObjects,
} from '#src/kernel/objects/sweep/bucket-owner.ts';
import { profileRetention } from '#src/features/profiles/retention.ts';
import { sweepObjects } from '#src/kernel/objects/sweep/sweep-objects.ts';
import { restoreBackup, takeBackup } from '#src/features/backup/backup.jetstream.ts';
import { createCommandContext, handleTransaction } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { createS3ObjectStore } from '#src/kernel/objects/s3/s3-object-store.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { buildAndStartS3 } from '#test/support/servers/real-s3.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const profile = { kind: 'profile', organizationId: 'acme', id: 'prf_1' } as const;

describe('a bucket', () => {
  const stack = new AsyncDisposableStack();
  let folder: string;
  let objects: ReturnType<typeof createS3ObjectStore>;
  let connection: JetStreamConnection;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bss-restored-'));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    const s3 = stack.use(await buildAndStartS3());
    objects = stack.use(createS3ObjectStore(s3.options));
    connection = await newEventStore(true);
  });
  afterAll(() => stack.disposeAsync());

  async function newEventStore(makesStreams: boolean): Promise<JetStreamConnection> {
    const nats = stack.use(await startNats());
    return stack.use(await connectJetStream({ url: nats.url, makesStreams, requiresLog: false }));
  }

  function append(...events: ProfileEvent[]) {
    const context = createCommandContext(createJetStreamEventStore(connection), Date.now);
    return handleTransaction<'profile'>(context, profile, newMetadata('test'), async (reads) => {
      await reads.readCurrent<'profile'>(profile);
      return [{ aggregate: profile, events }];
    });
  }

  /** One version is kept, so that each replaces the one before. */
  async function save(version: number, sha256: string): Promise<void> {
    async function* body() {
      yield Buffer.from(sha256);
    }
    await objects.put(`profiles/acme/prf_1/${sha256}`, body());
    const contents = { origins: [], cookies: [] };
    const savedAt = new Date().toISOString();
    const data = { version, sessionId: 'ses_1', savedAt, sha256, bytes: 1, browser: '1' };
    await append({ type: 'profile.version-saved', data: { ...data, contents, kept: 1 } });
  }

  async function sweepIn(ms: number) {
    const eventStore = createJetStreamEventStore(connection);
    const settings = { replacedKeptMs: 2 * DAY, now: () => Date.now() + ms };
    const rules = [profileRetention(eventStore, settings)];
    await requireOwnObjects({ objects, eventStore });
    return sweepObjects({ objects, rules }, new AbortController().signal, (error) => {
      throw error;
    });
  }

  async function stored(): Promise<string[]> {
    const listed = await Array.fromAsync(objects.list('profiles/'));
    return listed.map(({ key }) => key.split('/').at(-1) ?? '');
  }

  const [first, second, third] = ['1'.repeat(64), '2'.repeat(64), '3'.repeat(64)];

  test('loses nothing to the sweep after a restore of the backup of the day before', async () => {
    const createdAt = new Date().toISOString();
    await append({ type: 'profile.created', data: { name: 'shop', by: 'ada', at: createdAt } });
    await save(1, first);
    await takeBackup(connection, join(folder, 'backup'));
    await save(2, second);
    await save(3, third);
    expect(await sweepIn(DAY)).toMatchObject({ removed: 0, unknown: 0 });
    connection = await newEventStore(false);
    await restoreBackup(connection, join(folder, 'backup'));
    await expect(sweepIn(30 * DAY)).rejects.toThrow(AnotherEventStore);
    await adoptObjects({ objects, eventStore: createJetStreamEventStore(connection) });
    // The backup's only version is there, and so is what was saved after the backup.
    expect(await sweepIn(30 * DAY)).toMatchObject({ removed: 0, unknown: 2 });
    expect(await stored()).toEqual([first, second, third]);
  });

  test('is swept by no other event store', async () => {
    connection = await newEventStore(true);
    await expect(sweepIn(30 * DAY)).rejects.toThrow(AnotherEventStore);
    expect(await stored()).toHaveLength(3);
  });
});

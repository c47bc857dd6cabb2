import type { Aggregates, RecordedEvent, RefOf } from '#events/events.ts';
import { filters, type AggregateKind, type AggregateRef } from '#events/subjects.ts';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import type { ArchiveFiles } from '#src/features/archive/archive-files.ts';
import { withArchive, withArchivedRecords } from '#src/features/archive/archived-event-store.ts';
import { createHeadReader } from '#src/features/archive/head.ts';
import { openOnce, type OpenArchive } from '#src/features/archive/open-once.ts';
import type { EventStore, ReadOptions } from '#src/kernel/event-store/event-store.ts';
import { createJetStreamRawRecords } from '#src/kernel/event-store/jetstream/jetstream-raw-records.ts';
import type { RecordStream } from '#src/kernel/event-store/record-bytes.ts';
import { createJetStreamTruncation } from '#src/kernel/event-store/jetstream/jetstream-truncation.ts';
import type { RawRecord, RawRecords } from '#src/kernel/event-store/raw-records.ts';
import type { LogTruncation } from '#src/kernel/event-store/truncation.ts';
import { activated, accessed, iso, MINUTE, queued, requested, T0 } from '#test/support/examples.ts';
import { stopped, stopRequested } from '#test/support/examples.ts';
import { record } from '#test/support/history.ts';
import { openRealLog, type RealLog } from '#test/support/stores/event-stores.ts';

/** A log on a nats-server of its own, the files of its archive, and both together. */
export type ArchivedLog = AsyncDisposable & {
  real: RealLog;
  files: ArchiveFiles;
  truncation: LogTruncation;
  /** Of the log alone. */
  log: EventStore;
  logRecords: RawRecords & RecordStream;
  open: OpenArchive;
  /** Of the log and the archive. */
  eventStore: EventStore;
  records: RawRecords;
};

export async function openArchivedLog(files = createMemoryFiles()): Promise<ArchivedLog> {
  const real = await openRealLog();
  const log = real.eventStore;
  const logRecords = createJetStreamRawRecords(real.connection);
  const open = openOnce(async () => files, { readHead: createHeadReader(log) });
  return {
    real,
    files,
    truncation: createJetStreamTruncation(real.connection),
    log,
    logRecords,
    open,
    eventStore: withArchive(log, open),
    records: withArchivedRecords(logRecords, log, open),
    [Symbol.asyncDispose]: () => real[Symbol.asyncDispose](),
  };
}

type Life = { aggregate: AggregateRef; events: Aggregates[AggregateKind]['event'][] };

const place = { ip: '10.0.0.7', browsers: 'docker', poolMax: 4 } as const;
const ended = { reason: 'session_ended' } as const;
const credits = 120;

function lifeOf<Kind extends AggregateKind>(
  aggregate: RefOf<Kind>,
  ...events: Aggregates[Kind]['event'][]
): Life {
  return { aggregate, events };
}

/** A session that ends, or goes on, with its ledger, which goes on. */
export function sessionLife(organizationId: string, id: string, ends: boolean): Life[] {
  const session = { kind: 'session', organizationId, id } as const;
  const started = [requested(), queued, activated(), accessed(T0 + MINUTE)];
  const end = ends ? [stopRequested(), stopped(T0 + 10 * MINUTE, 10)] : [];
  const reserved = { type: 'ledger.slot-reserved', data: { sessionId: id, credits } } as const;
  const charge = { sessionId: id, creditsUsed: 10, creditsRefunded: 110 };
  const released = { type: 'ledger.slot-released', data: charge } as const;
  return [
    lifeOf<'session'>(session, ...started, ...end),
    lifeOf<'ledger'>({ kind: 'ledger', organizationId }, reserved, ...(ends ? [released] : [])),
  ];
}

export function workloadLife(id: string, sessionId: string, ends: boolean): Life {
  const assigned = { organizationId: 'acme', sessionId };
  return lifeOf<'workload'>(
    { kind: 'workload', id },
    { type: 'workload.provisioning', data: { serverId: 'srv_1' } },
    { type: 'workload.launching', data: {} },
    { type: 'workload.idle', data: { launchMs: 412 } },
    { type: 'workload.assigned', data: assigned },
    ...(ends
      ? ([
          { type: 'workload.terminating', data: ended },
          { type: 'workload.terminated', data: { ...ended, exitCode: 0 } },
        ] as const)
      : []),
  );
}

function organizationLife(organizationId: string): Life[] {
  const key = { keyId: 'key_1', hash: 'ab'.repeat(32), role: 'member', userId: 'u' } as const;
  return [
    lifeOf<'organization'>(
      { kind: 'organization', organizationId },
      { type: 'organization.registered', data: { name: organizationId, tier: 'free' } },
      { type: 'organization.key-issued', data: key },
      { type: 'organization.tier-changed', data: { tier: 'pro' } },
    ),
    lifeOf<'ledger'>(
      { kind: 'ledger', organizationId },
      { type: 'ledger.credits-granted', data: { credits: 6000 } },
    ),
  ];
}

/** Two organizations and two servers, and what lives there. */
export function manyLives(): Life[] {
  return [
    ...organizationLife('acme'),
    ...organizationLife('other'),
    lifeOf<'server'>({ kind: 'server', id: 'srv_1' }, { type: 'server.joined', data: place }),
    lifeOf<'server'>(
      { kind: 'server', id: 'srv_2' },
      { type: 'server.joined', data: place },
      { type: 'server.left', data: {} },
    ),
    ...sessionLife('acme', 'ses_1', true),
    workloadLife('wl_1', 'ses_1', true),
    ...sessionLife('acme', 'ses_2', false),
    ...sessionLife('other', 'ses_3', true),
    workloadLife('wl_2', 'ses_2', false),
    ...sessionLife('acme', 'ses_4', true),
    ...sessionLife('other', 'ses_5', false),
  ];
}

/** Appends the lives, each one round after the one before; returns their aggregates. */
export async function live(
  eventStore: EventStore,
  lives: readonly Life[],
): Promise<AggregateRef[]> {
  const left = lives.map(({ aggregate, events }) => ({ aggregate, events: [...events] }));
  for (let round = 0; left.some(({ events }) => events.length > 0); round += 1)
    for (const { aggregate, events } of left.slice(0, round + 1)) {
      const [next] = events.splice(0, 1);
      if (next !== undefined) await record<AggregateKind>(eventStore, aggregate, next);
    }
  return lives.map(({ aggregate }) => aggregate);
}

export async function eventsIn(
  eventStore: Pick<EventStore, 'read'>,
  range: Partial<ReadOptions> = {},
): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  const all = { subjects: filters.all, includesArchive: true, onUnreadable: fail, ...range };
  for await (const batch of eventStore.read(all)) {
    if (batch.length > (range.batchMax ?? 500)) throw new Error(`a batch of ${batch.length}`);
    events.push(...batch);
  }
  return events;
}

export async function recordsIn(
  records: RawRecords,
  after: number,
  upTo: number,
): Promise<RawRecord[]> {
  const range = { after, upTo, organizationId: null };
  return (await Array.fromAsync(records.read(range))).flat();
}

function fail({ reason }: { reason: string }): never {
  throw new Error(reason);
}

/** A time after all that is stored. */
export const later = (): string => iso(Date.now() + MINUTE);

/** A run archives what was stored before that time, however much it is. */
export const everythingBefore = (before: string) => ({
  before,
  eventsMax: Infinity,
  excessBefore: before,
});

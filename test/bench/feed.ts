import { readFileSync } from 'node:fs';
import { isRejection } from '#src/kernel/errors.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { decideLedger, emptyLedger } from '#src/kernel/domain/organization/ledger.ts';
import { filtersFor } from '#events/subjects.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';
import { DEV_KEY, startService, type RunningService } from '#test/support/service/service.ts';
import { send } from './http-client.ts';
import { startListeners } from './listeners-apart.ts';
import { clockMs } from './raw-stream.ts';
import { summarize, type Samples } from './samples.ts';

export type FeedLoad = { clients: number; createsPerSecond: number; seconds: number };

/** Measurements by the clients of one API process while sessions come and go. */
export type FeedFigures = {
  /** NATS itself: publish → subscriber beside the clients, ms. */
  core: Samples;
  /** Append → each client, ms. */
  append: Samples;
  /** The ratio of the two p50; and in each tenth of the time. */
  ratio: number;
  ratiosByTenth: number[];
  /** Events of the organization while the clients listened. */
  events: number;
  /** Clients that did not receive exactly these events in order. */
  wrong: number;
  /** Resident memory of the API process, MB: the maximum of each tenth of the time. */
  memoryMb: number[];
};

const PROBE_EVERY_MS = 250;
const SUBJECT = 'bench.feed';
const BODY_LENGTH = 2_000;
const MASTER_KEY = 'the-master-key-of-the-processes-of-one-load-test';
/** Load tests need limits that they do not reach. */
const TIERS = JSON.stringify({
  max: { requests_per_minute: 1e9, concurrent_sessions: 1e5, credits: 1e9 },
});

/** A service whose API is a separate process, so that its memory can be measured. */
export async function startApart(): Promise<
  { rest: RunningService; api: RunningService } & AsyncDisposable
> {
  await using stack = new AsyncDisposableStack();
  const common = { TIERS, MASTER_KEY, LOG_LEVEL: 'info' };
  const rest = stack.use(await startService({ ...common, POOL_MAX: '60', POOL_MIN_IDLE: '4' }));
  const { nats_url: NATS_URL, redis_url: REDIS_URL } = rest.runtime;
  const api = stack.use(await startService({ ...common, ROLES: 'api', NATS_URL, REDIS_URL }));
  const parts = stack.move();
  return { rest, api, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

/** Opens the clients, creates and stops sessions, and returns the clients' measurements. */
export async function measureFeed(
  { rest, api }: { rest: RunningService; api: RunningService },
  load: FeedLoad,
): Promise<FeedFigures> {
  await using connection = await connectJetStream({ url: rest.runtime.nats_url, name: 'bench' });
  const eventStore = createJetStreamEventStore(connection);
  using listeners = startListeners();
  const begin = await eventStore.lastSequence();
  await listeners.subscribe(rest.runtime.nats_url, SUBJECT);
  const url = `${api.apiUrl}/api/events`;
  await listeners.open({ url, key: DEV_KEY, lastId: begin, count: load.clients });
  const memory: number[] = [];
  const until = performance.now() + load.seconds * 1_000;
  const [probes] = await Promise.all([
    probe(connection, eventStore, until),
    createAndStop(api, load.createsPerSecond, until),
    watchMemory(api.pid, until, memory),
  ]);
  const expected: number[] = [];
  for await (const event of readEvents(eventStore, filtersFor('dev', null), fail, { after: begin }))
    expected.push(event.sequence);
  const asked = probes.appends.map(({ sequence }) => sequence);
  const { wrong, arrivals, received } = await listeners.tell(expected, asked);
  const cores = probes.core.flatMap((at, index) => {
    const receivedAt = received[index];
    return receivedAt === undefined ? [] : [{ at, ms: receivedAt - at }];
  });
  const appends = probes.appends.flatMap(({ at }, index) =>
    (arrivals[index] ?? []).map((arrival) => ({ at, ms: arrival - at })),
  );
  const [core, append] = [summarize(msOf(cores)), summarize(msOf(appends))];
  return {
    core,
    append,
    ratio: append.p50 / core.p50,
    ratiosByTenth: ratiosByTenth(cores, appends),
    events: expected.length,
    wrong,
    memoryMb: tenths(memory),
  };
}

/** An operation's start and its duration, both in ms. */
type Timed = { at: number; ms: number };
type Probes = {
  /** When each message was published. */
  core: number[];
  appends: { sequence: number; at: number }[];
};

function ratiosByTenth(core: readonly Timed[], appends: readonly Timed[]): number[] {
  const begin = Math.min(...core.map(({ at }) => at));
  const tenthMs = (Math.max(...core.map(({ at }) => at)) - begin + 1) / 10;
  const tenths = Array.from({ length: 10 }, (_, index) => {
    const isIn = ({ at }: Timed) => Math.floor((at - begin) / tenthMs) === index;
    return [core.filter(isIn), appends.filter(isIn)].map((timed) => summarize(msOf(timed)));
  });
  return tenths.flatMap(([one, other]) =>
    one !== undefined && other !== undefined && one.count > 0 && other.count > 0
      ? [other.p50 / one.p50]
      : [],
  );
}

function msOf(timed: readonly Timed[]): number[] {
  return timed.map(({ ms }) => ms);
}

/** Publishes by NATS itself and appends to the event store in turn, and records the times. */
async function probe(
  connection: JetStreamConnection,
  eventStore: EventStore,
  until: number,
): Promise<Probes> {
  const { nc } = connection;
  const probes: Probes = { core: [], appends: [] };
  const ledger = { kind: 'ledger', organizationId: 'dev' } as const;
  while (performance.now() < until) {
    await pause(PROBE_EVERY_MS / 2);
    // The message's number, padded to the length of an event.
    const body = `${probes.core.length} `.padEnd(BODY_LENGTH, 'x');
    probes.core.push(clockMs());
    nc.publish(SUBJECT, body);
    await pause(PROBE_EVERY_MS / 2);
    let at = 0;
    const timed: EventStore = {
      ...eventStore,
      append(changes) {
        at = clockMs();
        return eventStore.append(changes);
      },
    };
    const granted = await handleCommand<'ledger'>(
      createCommandContext(timed, Date.now),
      ledger,
      (state) => decideLedger({ type: 'GrantCredits', credits: 1 }, state ?? emptyLedger),
      newMetadata('bench'),
    );
    if (!isRejection(granted)) probes.appends.push({ sequence: granted.sequence, at });
  }
  return probes;
}

/**
 * Creates and stops sessions; each has this many characters of description in all of its events.
 */
export async function createAndStop(
  { apiUrl }: RunningService,
  perSecond: number,
  until: number,
  characters = 400,
): Promise<void> {
  const body = JSON.stringify({ description: 'x'.repeat(characters), duration: '10m' });
  const lives: Promise<void>[] = [];
  async function live(): Promise<void> {
    const created = await send('POST', `${apiUrl}/api/sessions`, body);
    const { id } = JSON.parse(created.text) as { id: string };
    await send('DELETE', `${apiUrl}/api/sessions/${id}`);
  }
  const begunAt = performance.now();
  for (let count = 1; performance.now() < until; count += 1) {
    lives.push(live());
    await pause(Math.max(0, begunAt + (count * 1_000) / perSecond - performance.now()));
  }
  await Promise.all(lives);
}

async function watchMemory(pid: number, until: number, megabytes: number[]): Promise<void> {
  while (performance.now() < until) {
    const [, kb = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    megabytes.push(Number(kb) / 1024);
    await pause(500);
  }
}

/** The maximum of each tenth. */
function tenths(values: readonly number[]): number[] {
  const size = Math.max(1, Math.ceil(values.length / 10));
  return Array.from({ length: Math.ceil(values.length / size) }, (_, index) =>
    Math.round(Math.max(...values.slice(index * size, (index + 1) * size))),
  );
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function fail(text: string): never {
  throw new Error(text);
}

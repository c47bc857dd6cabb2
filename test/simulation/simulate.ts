import { createHash } from 'node:crypto';
import { isOf, type RecordedEvent } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import { allProjections } from '#projections/all-projections.ts';
import { verify, type VerifyResult } from '#projections/maintenance/verify.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { createMemoryDeadLetters } from '#src/kernel/messaging/dead-letters.memory.ts';
import { createMemoryLeases } from '#src/kernel/messaging/leases.memory.ts';
import { createMemoryTimers } from '#src/kernel/messaging/timers.memory.ts';
import { createMemoryWorkQueues } from '#src/kernel/messaging/work-queue.memory.ts';
import type { Bug } from './bugs.ts';
import { createClients, type Organization } from './clients.ts';
import { createCluster, type Cluster } from './cluster.ts';
import { breaches, type Facts } from './invariants.ts';
import { createRandom } from '#test/support/random.ts';
import type { Servers } from './roles.ts';
import { createTroubles } from './troubles.ts';
import { createVirtualTime } from '#test/support/time/virtual-time.ts';
import { drawRates, type World } from './world.ts';

/** What came of one simulation. */
export type Outcome = {
  seed: number;
  /** One sentence for each broken invariant; none where the service kept them all. */
  breaches: string[];
  /** The same for the same seed: SHA-256 of all events in their order. */
  digest: string;
  events: number;
  /** How many of each event, and of each answer to clients. */
  counts: Record<string, number>;
  /** The story, if it was asked for. */
  story: string[];
};

export type Options = {
  seed: number;
  /** A defect that is planted into the servers, to see that it is found. */
  bug?: Bug;
  tellStory?: boolean;
};

/** How long the clients work while there is trouble. */
const TROUBLE_MS = [20_000, 60_000] as const;
/** The longest that everything takes to end by itself, once the troubles have ended. */
const SETTLE_MS = 15 * 60_000;
/** A process that looks for a due item of a queue does so this often. */
const LOOK_AGAIN_MS = 250;
/** How long an item is held for a process that may have been killed. */
const LEASE_MS = 8_000;
/** The most that the comparison of log and read model may take. */
const COMPARE_MS = 10_000;

/** Runs the whole service for some minutes of its time, with faults, as the seed decides. */
export async function simulate({ seed, bug, tellStory = false }: Options): Promise<Outcome> {
  const time = createVirtualTime(seed);
  const servers = { isDead: false };
  const story: string[] = [];
  const world: World = {
    seed,
    time,
    servers,
    rates: drawRates(seed),
    random: (name) => createRandom(seed, name),
    tell: (who, what) => void (tellStory && story.push(line(time.now(), who, what))),
  };
  try {
    return await time.runAs(servers, () => play(world, bug ?? null, story));
  } finally {
    // No timer of this simulation runs any more.
    servers.isDead = true;
  }
}

async function play(world: World, bug: Bug | null, story: string[]): Promise<Outcome> {
  const { time, seed } = world;
  const random = world.random('plan');
  const plain = createServers(world);
  const servers = bug === null ? plain : bug.plant(plain, world);
  const operator = createCommandContext(plain.eventStore, time.now);
  const organizations = Array.from({ length: random.integer(1, 3) }, (_, at): Organization => {
    return {
      id: `org_${at + 1}`,
      credits: random.integer(3, 80),
      concurrentSessions: random.integer(1, 4),
    };
  });
  const records = createRecords(world);
  const { log, storedAt } = records;
  void records.follow(plain.eventStore);
  for (const { id, credits } of organizations) {
    const asked = { id, name: id, tier: 'free', credits } as const;
    await registerOrganization(operator, asked, newMetadata('operator'));
  }
  const cluster = createCluster(world, servers);
  const clients = organizations.map((one) => createClients(world, cluster, one));
  const troubles = createTroubles(world, cluster, servers, operator);
  void cluster.supervise();
  const until = time.now() + random.integer(...TROUBLE_MS);
  let areDone = false;
  let healedAt = Infinity;
  async function script() {
    const work = clients.map((one) => one.run(until));
    await troubles.run(until);
    healedAt = time.now();
    await troubles.heal();
    await Promise.all(work);
    areDone = true;
  }
  void script();
  await time.runUntil(() => areDone, SETTLE_MS);
  const settleMs = bug?.settleMs ?? SETTLE_MS;
  const isSettled = await time.runUntil(() => hasSettled(records, cluster), settleMs);
  world.tell('all', isSettled ? 'all has come to its end' : 'NOT all has come to its end');
  await time.runUntil(() => false, 5_000);
  const places = cluster.places.filter(({ host }) => host !== null);
  let areStopped = false;
  void Promise.all(places.map((place) => cluster.stop(place, Infinity))).then(
    () => (areStopped = true),
  );
  await time.runUntil(() => areStopped, 60_000);
  // Servers whose browsers are left to the next process, and what was reported last.
  await time.runUntil(() => false, 5_000);
  records.end();
  for (const place of cluster.places) cluster.end(place, Infinity);
  const facts: Facts = {
    log,
    storedAt,
    organizations,
    answers: clients.flatMap(({ answers }) => answers),
    hosts: cluster.hosts,
    healedAt,
    failures: time.failures,
    differences: await differencesOf(world, plain),
  };
  const digest = digestOf(log);
  const { length: events } = log;
  return { seed, breaches: breaches(facts), digest, events, counts: countsOf(facts), story };
}

function createServers({ time }: World): Servers {
  const clock = { now: time.now };
  const options = { leaseMs: LEASE_MS, lookAgainMs: LOOK_AGAIN_MS };
  const eventStore = createMemoryEventStore();
  return {
    eventStore,
    views: createMemoryViews(),
    openWorkQueue: createMemoryWorkQueues(eventStore, { clock, ...options }),
    timers: createMemoryTimers(clock, options),
    leases: createMemoryLeases(clock),
    deadLetters: createMemoryDeadLetters(time.now),
    machines: (browsers) => browsers,
  };
}

type Records = ReturnType<typeof createRecords>;

/** All events as they are stored, with the sessions and browsers that have not ended. */
function createRecords(world: World) {
  const log: RecordedEvent[] = [];
  const storedAt: number[] = [];
  const sessions = new Set<string>();
  const browsers = new Map<string, string>();
  const reading = new AbortController();

  function take(event: RecordedEvent): void {
    log.push(event);
    storedAt.push(world.time.now());
    if (isOf('session', event) && event.state !== null)
      if (isFinal(event.state.status)) sessions.delete(event.aggregate.id);
      else sessions.add(event.aggregate.id);
    if (!isOf('workload', event) || event.state === null) return;
    const { id, status } = event.state;
    if (status === 'terminated') browsers.delete(id);
    else browsers.set(id, status);
  }
  async function follow(eventStore: EventStore): Promise<void> {
    const { signal } = reading;
    const options = { subjects: filters.all, after: 0, signal, onUnreadable: () => undefined };
    for await (const batch of eventStore.subscribe(options))
      for (const event of batch) {
        take(event);
        const { aggregate, sequence, type, data } = event;
        const id = 'id' in aggregate ? aggregate.id : aggregate.organizationId;
        world.tell('log', `${sequence} ${type} ${id} ${JSON.stringify(data).slice(0, 300)}`);
      }
  }
  return { log, storedAt, sessions, browsers, follow, end: () => reading.abort() };
}

/** Whether all processes run, every session has ended, and what is left are idle browsers. */
function hasSettled({ sessions, browsers }: Records, { places, hosts }: Cluster): boolean {
  return (
    sessions.size === 0 &&
    places.every(({ running }) => running !== null) &&
    [...browsers.values()].every((status) => status === 'idle') &&
    hosts.flatMap((host) => host.ids()).every((id) => browsers.has(id))
  );
}

/** Where the read model differs from a fold of the log. */
async function differencesOf({ time }: World, { eventStore, views }: Servers): Promise<string[]> {
  const { signal } = new AbortController();
  let results: VerifyResult[] | null = null;
  async function compare() {
    const options = { projections: allProjections, eventStore, views, signal, sample: null };
    results = await verify(options);
  }
  void compare();
  if (!(await time.runUntil(() => results !== null, COMPARE_MS))) return ['no end of comparing'];
  return (results ?? []).flatMap(({ projection, differences }: VerifyResult) =>
    differences.map((one) => `${projection}: ${JSON.stringify(one)}`),
  );
}

function digestOf(log: readonly RecordedEvent[]): string {
  const hash = createHash('sha256');
  for (const event of log) hash.update(JSON.stringify(event));
  return hash.digest('hex');
}

function countsOf({ log, answers }: Facts): Record<string, number> {
  const counts: Record<string, number> = {};
  const count = (name: string) => (counts[name] = (counts[name] ?? 0) + 1);
  for (const event of log) {
    count(event.type);
    if (event.type === 'session.failed' && isOf('session', event))
      count(`failed: ${event.data.reason}`);
    if (event.type === 'session.stopped' && isOf('session', event))
      count(`stopped: ${event.data.reason}`);
    if (event.type === 'server.reconciled' && isOf('server', event))
      for (const what of ['adopted', 'stopped', 'failed', 'corrected'] as const)
        if (event.data[what] > 0) count(`reconciled: ${what}`);
  }
  for (const answer of answers)
    count(answer.to === 'refused' ? `refused: ${answer.code}` : `answered: ${answer.to}`);
  return counts;
}

function line(now: number, who: string, what: string): string {
  return `${new Date(now).toISOString().slice(11, 23)} ${who.padEnd(18)} ${what}`;
}

import { createHash } from 'node:crypto';
import { isOf, type RecordedEvent } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import { allProjections } from '#projections/all-projections.ts';
import { verify } from '#projections/maintenance/verify.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { isFinal } from '#src/domain/session/session.ts';
import { createMemoryEventStore } from '#src/event-store/event-store.memory.ts';
import { createMemoryDeadLetters } from '#src/messaging/dead-letters.memory.ts';
import { createMemoryLeases } from '#src/messaging/leases.memory.ts';
import { createMemoryTimers } from '#src/messaging/timers.memory.ts';
import { createMemoryWorkQueues } from '#src/messaging/work-queue.memory.ts';
import type { Bug } from './bugs.ts';
import { createClients, type Organization } from './clients.ts';
import { createCluster } from './cluster.ts';
import { breaches, type Facts } from './invariants.ts';
import { createRandom } from './random.ts';
import type { Servers } from './roles.ts';
import { createTroubles } from './troubles.ts';
import { createVirtualTime } from './virtual-time.ts';
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
  const log: RecordedEvent[] = [];
  const open = new Set<string>();
  const reading = new AbortController();
  void follow(world, plain, { log, open, signal: reading.signal });
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
  const isSettled = await time.runUntil(() => open.size === 0, SETTLE_MS);
  world.tell('all', isSettled ? 'every session has ended' : 'NOT every session has ended');
  await time.runUntil(() => false, 5_000);
  const places = cluster.places.filter(({ host }) => host !== null);
  let areStopped = false;
  void Promise.all(places.map((place) => cluster.stop(place, Infinity))).then(
    () => (areStopped = true),
  );
  await time.runUntil(() => areStopped, 60_000);
  // Servers whose browsers are left to the next process, and what was reported last.
  await time.runUntil(() => false, 5_000);
  reading.abort();
  for (const place of cluster.places) cluster.end(place, Infinity);
  const facts: Facts = {
    log,
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
  const options = { lookAgainMs: LOOK_AGAIN_MS };
  const eventStore = createMemoryEventStore();
  return {
    eventStore,
    views: createMemoryViews(),
    openWorkQueue: createMemoryWorkQueues(eventStore, { clock, ...options }),
    timers: createMemoryTimers(clock, options),
    leases: createMemoryLeases(clock),
    deadLetters: createMemoryDeadLetters(time.now),
  };
}

/** Keeps all events as they are stored, and the ids of the sessions that have not ended. */
async function follow(
  world: World,
  { eventStore }: Servers,
  { log, open, signal }: { log: RecordedEvent[]; open: Set<string>; signal: AbortSignal },
): Promise<void> {
  const options = { subjects: filters.all, after: 0, signal, onUnreadable: () => undefined };
  for await (const batch of eventStore.subscribe(options))
    for (const event of batch) {
      log.push(event);
      if (isOf('session', event) && event.state !== null)
        if (isFinal(event.state.status)) open.delete(event.aggregate.id);
        else open.add(event.aggregate.id);
      const { aggregate, sequence, type, data } = event;
      const id = 'id' in aggregate ? aggregate.id : aggregate.organizationId;
      world.tell('log', `${sequence} ${type} ${id} ${JSON.stringify(data).slice(0, 300)}`);
    }
}

/** Where the read model differs from a fold of the log. */
async function differencesOf({ time }: World, { eventStore, views }: Servers): Promise<string[]> {
  const { signal } = new AbortController();
  let found: string[] | null = null;
  const options = { projections: allProjections, eventStore, views, signal, sample: null };
  void verify(options).then((results) => {
    found = results.flatMap(({ projection, differences }) =>
      differences.map((one) => `${projection}: ${JSON.stringify(one)}`),
    );
  });
  await time.runUntil(() => found !== null, 10_000);
  return found ?? ['the comparison did not end'];
}

function digestOf(log: readonly RecordedEvent[]): string {
  const hash = createHash('sha256');
  for (const event of log) hash.update(JSON.stringify(event));
  return hash.digest('hex');
}

function countsOf({ log, answers }: Facts): Record<string, number> {
  const counts: Record<string, number> = {};
  const count = (name: string) => (counts[name] = (counts[name] ?? 0) + 1);
  for (const { type } of log) count(type);
  for (const { to } of answers) count(`answer: ${to}`);
  return counts;
}

function line(now: number, who: string, what: string): string {
  return `${new Date(now).toISOString().slice(11, 23)} ${who.padEnd(18)} ${what}`;
}

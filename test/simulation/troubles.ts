import type { ServerState } from '#events/server.ts';
import { filters, streamFilter } from '#events/subjects.ts';
import { allProjections } from '#projections/all-projections.ts';
import { projectionId } from '#projections/projection.ts';
import { carryForward } from '#src/commands/carry-forward.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { decideServer } from '#src/kernel/domain/fleet/server.ts';
import type { Cluster, Place } from './cluster.ts';
import type { Servers } from './roles.ts';
import { noFaults, pause, type World } from './world.ts';

/** What happens to processes and hosts, beside the faults of single calls. */
export type Troubles = {
  /** Causes trouble until the time (by the simulation's clock). */
  run(until: number): Promise<void>;
  /** Ends all trouble: everything runs, reaches everything and knows the time. */
  heal(): Promise<void>;
};

const SKEW_MS = 90_000;
const DOWN_MS = [100, 40_000] as const;
const CUT_OFF_MS = [200, 30_000] as const;

export function createTroubles(
  world: World,
  cluster: Cluster,
  servers: Servers,
  operator: CommandContext,
): Troubles {
  const random = world.random('troubles');
  const meanMs = random.integer(2_000, 20_000);

  function cutOff({ process }: Place, server: 'event-log' | 'read-model'): void {
    if (process === null) return;
    const forMs = random.integer(...CUT_OFF_MS);
    world.tell(process.name, `does not reach the ${server} for ${forMs} ms`);
    process.cutOff.add(server);
    setTimeout(() => reconnect(process, server), forMs);
  }
  async function losePower(place: Place): Promise<void> {
    const { host } = place;
    if (host === null || !host.isUp) return;
    const forMs = random.integer(...DOWN_MS);
    world.tell(host.id, `has no power for ${forMs} ms`);
    cluster.end(place, forMs);
    host.powerOff();
    await pause(forMs);
    host.isUp = true;
  }
  async function order(type: 'Drain' | 'Undrain', id: string): Promise<void> {
    world.tell('operator', `${type}s ${id}`);
    const server = { kind: 'server', id } as const;
    const decide = (one: ServerState | null) => decideServer({ type }, one);
    // A server that has never joined is not known yet.
    if ((await operator.eventStore.readLast(server)) === null) return;
    await handleCommand<'server'>(operator, server, decide, newMetadata('operator'));
  }
  function endBrowser(reason: 'browser_crashed' | 'browser_closed'): void {
    const host = random.pick(cluster.hosts);
    const running = host.running();
    if (running.length > 0) host.end(random.pick(running), reason);
  }
  async function loseReadModel(): Promise<void> {
    world.tell('read model', 'loses its data');
    for (const projection of allProjections) await servers.views.drop(projectionId(projection));
  }
  /** What the archivist does before a purge. */
  async function carryOneForward(): Promise<void> {
    const archivedUpTo = await operator.eventStore.lastSequence();
    const range = { subjects: filters.all, onUnreadable: () => undefined };
    const batches = await Array.fromAsync(operator.eventStore.read(range));
    const { aggregate } = random.pick(batches.flat());
    const metadata = newMetadata('archivist');
    const outcome = await carryForward(operator, aggregate, archivedUpTo, metadata);
    world.tell('archivist', `${streamFilter(aggregate)}: ${outcome}`);
  }
  function skew({ process }: Place): void {
    if (process === null) return;
    process.skewMs = random.integer(-SKEW_MS, SKEW_MS);
    world.tell(process.name, `has a clock that is ${process.skewMs} ms ahead`);
  }
  const kinds: ((place: Place) => void | Promise<void>)[] = [
    (place) => {
      world.tell(place.name, 'is killed');
      cluster.end(place, random.integer(...DOWN_MS));
    },
    (place) => cluster.stop(place, random.integer(...DOWN_MS)),
    (place) => cutOff(place, 'event-log'),
    (place) => cutOff(place, 'read-model'),
    losePower,
    skew,
    () => order('Drain', random.pick(cluster.hosts).id),
    () => order('Undrain', random.pick(cluster.hosts).id),
    () => endBrowser('browser_crashed'),
    () => endBrowser('browser_closed'),
    loseReadModel,
    carryOneForward,
  ];
  // Each seed has some of the kinds: a fault that always comes with all others hides others.
  const chosen = kinds.filter(() => random.chance(0.6));

  return {
    async run(until) {
      while (chosen.length > 0) {
        await pause(random.pauseMs(meanMs));
        if (world.time.now() >= until) return;
        void random.pick(chosen)(random.pick(cluster.places));
      }
    },
    async heal() {
      world.tell('all', 'the troubles end');
      Object.assign(world.rates, noFaults);
      for (const place of cluster.places) {
        if (place.process?.isDead === true) cluster.end(place, 0);
        place.downUntil = 0;
        if (place.host !== null) place.host.isUp = true;
        if (place.process === null) continue;
        place.process.skewMs = 0;
        for (const server of [...place.process.cutOff]) reconnect(place.process, server);
      }
      for (const { id } of cluster.hosts) await order('Undrain', id);
    },
  };
}

function reconnect(
  process: NonNullable<Place['process']>,
  server: 'event-log' | 'read-model',
): void {
  if (!process.cutOff.delete(server) || process.isDead || server === 'read-model') return;
  for (const listener of process.onReconnect) listener();
}

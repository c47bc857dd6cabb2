import { sleep } from '#src/kernel/async/sleep.ts';
import { createHost, type Host } from './host.ts';
import { startRoles, type Role, type Roles, type Servers } from './roles.ts';
import { createProcess, kill, pause, type Process, type World } from './world.ts';

/** A place for a process: what runs there, now or not, and is started again after its end. */
export type Place = {
  readonly name: string;
  readonly roles: readonly Role[];
  readonly host: Host | null;
  process: Process | null;
  /** The roles of the process, once it has started. */
  running: Roles | null;
  /** When it is started again; Infinity: not by itself. */
  downUntil: number;
};

export type Cluster = ReturnType<typeof createCluster>;

type Layout = { name: string; roles: Role[] }[];

const ROLES: Role[] = ['api', 'projector', 'timekeeper', 'provisioner'];
const apart: Layout = [
  { name: 'api-1', roles: ['api'] },
  { name: 'api-2', roles: ['api'] },
  { name: 'timekeeper-1', roles: ['timekeeper'] },
  { name: 'timekeeper-2', roles: ['timekeeper'] },
  { name: 'projector-1', roles: ['projector'] },
  { name: 'provisioner-1', roles: ['provisioner'] },
  { name: 'provisioner-2', roles: ['provisioner'] },
];
const together: Layout = [
  { name: 'all-1', roles: ROLES },
  { name: 'all-2', roles: ROLES },
];
const split: Layout = [
  { name: 'control-1', roles: ['api', 'projector', 'timekeeper'] },
  { name: 'control-2', roles: ['api', 'timekeeper'] },
  { name: 'provisioner-1', roles: ['provisioner'] },
  { name: 'provisioner-2', roles: ['provisioner'] },
];

/** How often it is looked which processes have ended. */
const LOOK_MS = 200;
/** A process whose start has failed is started again after this. */
const RETRY_MS = 1_000;
/** A restart takes this long; the longer ones outlast the lease of a server. */
const RESTART_MS = [200, 25_000] as const;

/** The processes of the service and their hosts, each started again after it has ended. */
export function createCluster(world: World, servers: Servers) {
  const random = world.random('cluster');
  const layout = random.pick([apart, together, split]);
  const hasContainers = random.chance(0.5);
  const places = layout.map(({ name, roles }): Place => {
    const host = roles.includes('provisioner')
      ? createHost(world, `server-${name.at(-1)}`, hasContainers)
      : null;
    return { name, roles, host, process: null, running: null, downUntil: 0 };
  });
  let starts = 0;

  function start(place: Place): void {
    starts += 1;
    const process = createProcess(`${place.name}#${starts}`);
    place.process = process;
    void world.time.runAs(process, async () => {
      try {
        const running = await startRoles(world, process, servers, place);
        world.tell(process.name, 'has started');
        place.running = running;
      } catch (error) {
        world.tell(process.name, `fails to start: ${String(error)}`);
        if (place.process === process) end(place, RETRY_MS);
      }
    });
  }
  /** Ends a process at once; it is started again after the time. */
  function end(place: Place, downMs: number): void {
    if (place.process === null) return;
    kill(place.process);
    place.host?.processEnded();
    Object.assign(place, { process: null, running: null, downUntil: world.time.now() + downMs });
  }
  /** Looks after the processes, until the simulation ends. */
  async function supervise(): Promise<void> {
    for (;;) {
      for (const place of places) {
        if (place.process?.isDead === true) end(place, random.integer(...RESTART_MS));
        const isDue = place.process === null && place.downUntil <= world.time.now();
        if (isDue && place.host?.isUp !== false) start(place);
      }
      await pause(LOOK_MS);
    }
  }
  /** Ends a process by SIGTERM: it finishes what it does, within a bound. */
  async function stop(place: Place, downMs: number): Promise<void> {
    const { process, running } = place;
    if (process === null || running === null) return end(place, downMs);
    world.tell(process.name, 'gets SIGTERM');
    place.running = null;
    const disposed = world.time.runAs(process, () => running[Symbol.asyncDispose]());
    await Promise.race([Promise.resolve(disposed).catch(() => undefined), sleep(TERMINATE_MS)]);
    if (place.process === process) end(place, downMs);
  }
  return { places, supervise, end, stop, hosts: places.flatMap(({ host }) => host ?? []) };
}

/** A supervisor sends SIGKILL after this. */
const TERMINATE_MS = 30_000;

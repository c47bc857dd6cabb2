import { pino } from 'pino';
import type { RecordedOf } from '#events/events.ts';
import type { ServerEvent, ServerState } from '#events/server.ts';
import type { BrowserOptions, SessionState } from '#events/session.ts';
import { runProjection } from '#projections/runner/run-projection.ts';
import { idOf } from '#projections/projection.ts';
import { readLeaks } from '#projections/read-leaks.ts';
import { readList } from '#projections/store/queries.ts';
import { servers } from '#projections/servers.ts';
import { sessionView } from '#projections/session-view.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import type { Views } from '#projections/store/views.ts';
import { allWorkloads, workloads } from '#projections/workloads.ts';
import type { WorkloadState } from '#events/workload.ts';
import { isRejected } from '#src/errors.ts';
import { newId } from '#src/ids.ts';
import { causeBy } from '#src/commands/metadata.ts';
import { createMemoryEventLog } from '#src/event-store/event-store.memory.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { load } from '#src/event-store/load-state.ts';
import { handle } from '#src/commands/handle-command.ts';
import { handleSession } from '#src/commands/handle-session-command.ts';
import { createMemoryLeases } from '#src/messaging/leases.memory.ts';
import { createMemoryParked } from '#src/messaging/dead-letters.memory.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { startTail } from '#src/event-store/session-events.ts';
import {
  createSimulatedBrowsers,
  type SimulatedBrowsers,
} from '#src/provisioner/browsers/simulated/simulated-browsers.ts';
import type { Browsers } from '#src/provisioner/browsers/browsers.ts';
import type { PoolLimits } from '#src/provisioner/pool/pool.ts';
import { startProvisioner, type Provisioner } from '#src/provisioner/provisioner.ts';
import { decideServer, type ServerCommand } from '#src/domain/fleet/server.ts';
import type { SessionCommand } from '#src/domain/session/commands.ts';
import { eventually } from './service.ts';
import { createSession } from '#test/support/examples.ts';

const organizationId = 'acme';
const LIMITS: PoolLimits = {
  minIdle: 1,
  maxIdle: 4,
  max: 4,
  launchesAtOnce: 4,
  browserBytes: 0,
};
const plain: BrowserOptions = { viewport: null, locale: null, timezone: null };

/** A server of the fleet: a provisioner, and the machine that it speaks for. */
export type FleetServer = {
  id: string;
  provisioner: Provisioner;
  /** What really runs there; outlives the provisioner. */
  machine: SimulatedBrowsers;
  /** As kill -9: nothing of it is heard or done any more, and what runs goes on. */
  kill(): void;
} & AsyncDisposable;

export type ServerOptions = {
  id?: string;
  limits?: Partial<PoolLimits>;
  /** That of an earlier provisioner: what runs there can be adopted. */
  machine?: SimulatedBrowsers;
  launchMs?: number;
  /** Share of the launches that fail. */
  failRate?: number;
  /** Memory that is free on the machine; null: not known. */
  memoryFreeBytes?: () => number | null;
  /** The read model as this server's provisioner finds it; by default as it is. */
  views?: (views: Views) => Views;
};

/** Provisioners over one log and one read model, all in this process's memory. */
export async function openFleet() {
  const stack = new AsyncDisposableStack();
  const desk = { log: createMemoryEventLog({ clock: { now: Date.now } }), now: Date.now };
  const unreadable = new Map<string, () => Error | null>();
  const views = stack.use(createMemoryViews());
  const tail = stack.use(await startTail(desk.log, rethrow));
  const leases = createMemoryLeases({ now: Date.now });
  const stop = new AbortController();
  const common = { log: desk.log, views, parked: createMemoryParked(), signal: stop.signal };
  const projecting = Promise.all([
    runProjection({ ...common, projection: sessionView, onParked: rethrow }),
    runProjection({ ...common, projection: workloads, onParked: rethrow }),
    runProjection({ ...common, projection: servers, onParked: rethrow }),
  ]);
  stack.defer(async () => {
    stop.abort();
    await projecting;
  });
  const asked = { id: organizationId, name: 'Acme', tier: 'max', credits: 1e6 } as const;
  await registerOrganization(desk, asked, causeBy('test'));

  async function join(options: ServerOptions = {}): Promise<FleetServer> {
    const { id = newId('srv'), limits, launchMs = 5, failRate = 0 } = options;
    const machine =
      options.machine ?? stack.use(await createSimulatedBrowsers({ launchMs, failRate }));
    const cut = createCut();
    const provisioner = await startProvisioner({
      desk: {
        ...desk,
        log: cut.wrap<EventLog>({
          ...desk.log,
          inbox: cut.inbox(desk.log),
          last: failing(desk.log, unreadable),
        }),
      },
      browsers: cut.wrap<Browsers>({ ...machine, [Symbol.asyncDispose]: async () => undefined }),
      views: options.views?.(views) ?? views,
      ...{ tail, leases: cut.wrap(leases), log: pino({ level: 'silent' }) },
      server: { id, ip: '10.0.0.1' },
      vncPasswordOf: (workloadId) => workloadId.slice(-8),
      limits: { ...LIMITS, ...limits },
      readHost: async () => {
        return { memoryFreeBytes: options.memoryFreeBytes?.() ?? null, cpuPressure: null };
      },
      onLogReconnect: () => () => undefined,
    });
    stack.defer(async () => {
      if (!cut.isMade()) await provisioner[Symbol.asyncDispose]();
    });
    return { id, provisioner, machine, kill: cut.make, [Symbol.asyncDispose]: end };

    async function end(): Promise<void> {
      if (!cut.isMade()) await provisioner[Symbol.asyncDispose]();
      cut.make();
    }
  }

  async function tell(id: string, command: SessionCommand) {
    const limits = { concurrentSessions: 1_000 };
    const identity = { organizationId, id };
    const handled = await handleSession(desk, identity, command, causeBy('test'), limits);
    if (isRejected(handled)) throw new Error(handled.rejected);
    return handled.state;
  }
  async function create(browser: Partial<BrowserOptions> = {}): Promise<string> {
    const id = newId('ses');
    await tell(id, createSession({ now: Date.now(), browser: { ...plain, ...browser } }));
    return id;
  }
  async function read(id: string): Promise<SessionState> {
    const { state } = await load<'session'>(desk.log, { kind: 'session', organizationId, id });
    if (state === null) throw new Error(`no session ${id}`);
    return state;
  }
  async function serverOf(id: string): Promise<ServerState | null> {
    return (await load<'server'>(desk.log, { kind: 'server', id })).state;
  }
  return {
    desk,
    views,
    join,
    /** By an aggregate's id: what its servers' reads of its last event fail with (null: not). */
    unreadable,
    tell,
    create,
    read,
    serverOf,
    becomes: (id: string, status: SessionState['status']) =>
      eventually(async () => {
        const state = await read(id);
        return state.status === status && state;
      }, `${id} is ${status}`),
    /** An operator's word, or another part's. */
    say: (id: string, command: ServerCommand) =>
      handle<'server'>(
        desk,
        { kind: 'server', id },
        (server) => decideServer(command, server),
        causeBy('test'),
      ),
    /** All that the log has of one type about a server. */
    async heard<Type extends ServerEvent['type']>(id: string, type: Type) {
      const found: Extract<RecordedOf<'server'>, { type: Type }>[] = [];
      for await (const event of desk.log.history<'server'>({ kind: 'server', id }))
        if (event.type === type) found.push(event as Extract<RecordedOf<'server'>, { type: Type }>);
      return found;
    },
    /** The gauges, as whoever watches the fleet reads them. */
    leaks: () => readLeaks(views),
    /** Browsers that are there or coming or going, by the log. */
    workloads: () => readList<WorkloadState>(views, idOf(workloads), allWorkloads),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** What is called behind a cut never answers. */
function createCut() {
  let isMade = false;
  return {
    make: () => void (isMade = true),
    isMade: () => isMade,
    /** What comes to one that is cut off goes back. */
    inbox:
      (log: EventLog): EventLog['inbox'] =>
      async (name, subjects) => {
        const inbox = await log.inbox(name, subjects);
        async function next(waitMs: number, signal: AbortSignal) {
          const delivery = await inbox.next(waitMs, signal);
          if (!isMade || delivery === null) return delivery;
          delivery.retryAfter(0);
          return new Promise<never>(() => undefined);
        }
        return { ...inbox, next };
      },
    wrap<Port extends object>(port: Port): Port {
      return new Proxy(port, {
        get(target, name, receiver): unknown {
          const value: unknown = Reflect.get(target, name, receiver);
          if (typeof value !== 'function') return value;
          return (...args: unknown[]): unknown =>
            isMade ? new Promise(() => undefined) : Reflect.apply(value, target, args);
        },
      });
    },
  };
}

/** The test's own reads do not fail. */
function failing(
  log: EventLog,
  unreadable: ReadonlyMap<string, () => Error | null>,
): EventLog['last'] {
  return async (aggregate, options) => {
    const error = 'id' in aggregate ? unreadable.get(aggregate.id)?.() : null;
    if (error) throw error;
    return log.last(aggregate, options);
  };
}

function rethrow(error: unknown, what: string): never {
  throw new Error(`${what}: ${JSON.stringify(error)}`);
}

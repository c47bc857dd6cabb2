import { pino } from 'pino';
import type { RecordedOf } from '#events/events.ts';
import type { ServerEvent, ServerState } from '#events/server.ts';
import type { BrowserOptions, SessionState } from '#events/session.ts';
import { runProjection } from '#projections/runner/run-projection.ts';
import { projectionId } from '#projections/projection.ts';
import { readLeaks } from '#projections/store/queries.ts';
import { readList } from '#projections/store/queries.ts';
import { servers } from '#projections/servers.ts';
import { sessionView } from '#projections/session-view.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import type { Views } from '#projections/store/views.ts';
import { allWorkloads, workloads } from '#projections/workloads.ts';
import type { WorkloadState } from '#events/workload.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { newId } from '#src/kernel/ids.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { createMemoryLeases } from '#src/kernel/messaging/leases.memory.ts';
import { createMemoryWorkQueues } from '#src/kernel/messaging/work-queue.memory.ts';
import type { OpenWorkQueue } from '#src/kernel/messaging/work-queue.ts';
import { createMemoryDeadLetters } from '#src/kernel/messaging/dead-letters.memory.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { subscribeToSessions } from '#src/kernel/event-store/session-events.ts';
import {
  createSimulatedBrowsers,
  type SimulatedBrowsers,
} from '#src/browsers/simulated/simulated-browsers.ts';
import type { Browsers } from '#src/browsers/browsers.ts';
import type { BlackBoxes } from '#src/features/black-box/black-boxes.ts';
import type { PoolLimits } from '#src/roles/provisioner/pool/pool.ts';
import {
  startProvisioner,
  type Provisioner,
  type ProvisionerDependencies,
} from '#src/roles/provisioner/provisioner.ts';
import { decideServer, type ServerCommand } from '#src/kernel/domain/fleet/server.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { blackBoxPart } from '#src/features/black-box/black-box-part.ts';
import { createOpenEgress } from '#src/features/egress/open-egress.ts';
import { recorderPart } from '#src/features/recordings/recorder/recorder-part.ts';
import type { RecorderOptions } from '#src/features/recordings/recorder/recorder.ts';
import type { BrowserPart } from '#src/roles/provisioner/browser-part.ts';
import { memoryProfiles } from '#test/support/stores/memory-profiles.ts';
import { eventually } from './service.ts';
import { createSession } from '#test/support/examples.ts';

const organizations = ['acme', 'beta'] as const;
const LIMITS: PoolLimits = {
  minIdle: 1,
  maxIdle: 4,
  max: 4,
  launchesAtOnce: 4,
  browserBytes: 0,
};
const plain: BrowserOptions = { viewport: null, locale: null, timezone: null };

/** A server of the fleet: a provisioner and the host that it runs browsers on. */
export type FleetServer = {
  id: string;
  provisioner: Provisioner;
  /** The browsers that really run there; they outlive the provisioner. */
  machine: SimulatedBrowsers;
  /** Like kill -9: the provisioner stops, and its browsers continue to run. */
  kill(): void;
} & AsyncDisposable;

export type ServerOptions = {
  /** What a browser may store on the server; absent: any number of bytes. */
  storedBytesMax?: number;
  id?: string;
  limits?: Partial<PoolLimits>;
  /** The host of an earlier provisioner: its browsers can be adopted. */
  machine?: SimulatedBrowsers;
  /** Other browsers than simulated ones; `machine` has none of them then. */
  browsers?: Browsers;
  launchMs?: number;
  /** Share of launches that fail, 0 to 1. */
  failRate?: number;
  /** Free memory of the host; null: unknown. */
  memoryFreeBytes?: () => number | null;
  /** After this a full server replaces an outdated browser without a spare one. */
  fullMs?: number;
  /** Replaces the read model of this server's provisioner. */
  views?: (views: Views) => Views;
  /** The black boxes of its browsers; absent: there are none. */
  blackBoxes?: BlackBoxes;
  /** Where the recordings of its sessions are stored; absent: none is made. */
  recordings?: Pick<RecorderOptions, 'objects' | 'maxBytes' | 'times'>;
  openEgress?: ProvisionerDependencies['openEgress'];
  /** Its profiles, instead of those in memory. */
  openProfiles?: ProvisionerDependencies['openProfiles'];
  /** Further parts of it. */
  parts?: readonly BrowserPart[];
  /** What becomes of its browsers when it ends; they are stopped by default. */
  onShutdown?: 'stop' | 'leave';
};

const vncPasswordOf = (workloadId: string) => workloadId.slice(-8);

function partsOf(options: ServerOptions, now: () => number): BrowserPart[] {
  const { blackBoxes, recordings, parts = [] } = options;
  const log = pino({ level: 'silent' });
  return [
    ...(recordings === undefined ? [] : [recorderPart({ ...recordings, vncPasswordOf, log, now })]),
    ...(blackBoxes === undefined ? [] : [blackBoxPart(blackBoxes)]),
    ...parts,
  ];
}

/**
 * Provisioners with one event store and one read model, all in this process's memory.
 * @param asRead the event store and the work queues as the provisioners read them
 * @param now their clock, milliseconds since the epoch
 */
export async function openFleet({
  events: asRead = (eventStore: EventStore) => eventStore,
  items: asTaken = (open: OpenWorkQueue) => open,
  now = Date.now,
} = {}) {
  const stack = new AsyncDisposableStack();
  const context = createCommandContext(createMemoryEventStore(), now);
  const openWorkQueue = createMemoryWorkQueues(context.eventStore);
  const asFound = asRead(context.eventStore);
  const unreadable = new Map<string, () => Error | null>();
  const views = stack.use(createMemoryViews());
  const sessionEvents = stack.use(await subscribeToSessions(asFound, rethrow));
  const leases = createMemoryLeases({ now: Date.now });
  const stop = new AbortController();
  const common = {
    eventStore: context.eventStore,
    views,
    deadLetters: createMemoryDeadLetters(),
    signal: stop.signal,
  };
  const projecting = Promise.all([
    runProjection({ ...common, projection: sessionView, onDeadLetter: rethrow }),
    runProjection({ ...common, projection: workloads, onDeadLetter: rethrow }),
    runProjection({ ...common, projection: servers, onDeadLetter: rethrow }),
  ]);
  stack.defer(async () => {
    stop.abort();
    await projecting;
  });
  for (const id of organizations) {
    const asked = { id, name: id, tier: 'max', credits: 1e6 } as const;
    await registerOrganization(context, asked, newMetadata('test'));
  }
  /** The organizations of the sessions that are not `acme`'s, by session. */
  const organizationOf = new Map<string, string>();
  const identityOf = (id: string) => {
    return { organizationId: organizationOf.get(id) ?? 'acme', id };
  };

  async function join(options: ServerOptions = {}): Promise<FleetServer> {
    const { id = newId('srv'), limits, launchMs = 5, failRate = 0 } = options;
    const machine =
      options.machine ?? stack.use(await createSimulatedBrowsers({ launchMs, failRate }));
    const cut = createCut();
    const provisioner = await startProvisioner({
      context: createCommandContext(
        cut.wrap<EventStore>({ ...asFound, readLast: failing(asFound, unreadable) }),
        now,
      ),
      openWorkQueue: cut.workQueue(asTaken(openWorkQueue)),
      browsers: cut.wrap(options.browsers ?? withoutEnd(machine)),
      views: options.views?.(views) ?? views,
      ...{ sessionEvents, leases: cut.wrap(leases), log: pino({ level: 'silent' }) },
      server: { id, ip: '10.0.0.1' },
      vncPasswordOf,
      parts: partsOf(options, now),
      openProfiles: options.openProfiles ?? (await memoryProfiles(stack, asFound)),
      limits: { ...LIMITS, ...limits },
      ...(options.onShutdown !== undefined && { onShutdown: options.onShutdown }),
      ...(options.fullMs !== undefined && { replaceOnFullMs: options.fullMs }),
      ...(options.storedBytesMax !== undefined && { storedBytesMax: options.storedBytesMax }),
      openEgress: options.openEgress ?? createOpenEgress(),
      queueTimeoutMs: 300_000,
      readHost: () => {
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

  async function sendSessionCommand(id: string, command: SessionCommand) {
    const limits = { concurrentSessions: 1_000 };
    const identity = identityOf(id);
    const handled = await handleSessionCommand(
      context,
      identity,
      command,
      newMetadata('test'),
      limits,
    );
    if (isRejection(handled)) throw new Error(handled.code);
    return handled.state;
  }
  async function create(
    browser: Partial<BrowserOptions> = {},
    organizationId: (typeof organizations)[number] = 'acme',
  ): Promise<string> {
    const id = newId('ses');
    organizationOf.set(id, organizationId);
    await sendSessionCommand(id, createSession({ now: now(), browser: { ...plain, ...browser } }));
    return id;
  }
  async function read(id: string): Promise<SessionState> {
    const { state } = await loadState<'session'>(context.eventStore, {
      kind: 'session',
      ...identityOf(id),
    });
    if (state === null) throw new Error(`no session ${id}`);
    return state;
  }
  async function serverOf(id: string): Promise<ServerState | null> {
    return (await loadState<'server'>(context.eventStore, { kind: 'server', id })).state;
  }
  return {
    context,
    views,
    sessionEvents,
    join,
    /** By aggregate id: the error of the provisioners' reads of its last event; null: none. */
    unreadable,
    sendSessionCommand,
    create,
    read,
    serverOf,
    waitForStatus: (id: string, status: SessionState['status']) =>
      eventually(async () => {
        const state = await read(id);
        return state.status === status && state;
      }, `${id} is ${status}`),
    /** Sends a command of an operator or of another role. */
    sendServerCommand: (id: string, command: ServerCommand) =>
      handleCommand<'server'>(
        context,
        { kind: 'server', id },
        (server) => decideServer(command, server),
        newMetadata('test'),
      ),
    /** All events of one type of a server. */
    async serverEvents<Type extends ServerEvent['type']>(id: string, type: Type) {
      const found: Extract<RecordedOf<'server'>, { type: Type }>[] = [];
      for await (const event of context.eventStore.history<'server'>({ kind: 'server', id }))
        if (event.type === type) found.push(event as Extract<RecordedOf<'server'>, { type: Type }>);
      return found;
    },
    /** What the event of a session's failure says beside its reason. */
    async detailOf(id: string) {
      const session = { kind: 'session', ...identityOf(id) } as const;
      for await (const event of context.eventStore.history<'session'>(session))
        if (event.type === 'session.failed') return event.data.detail;
      return null;
    },
    async workloadEvents(id: string): Promise<string[]> {
      const types: string[] = [];
      for await (const { type } of context.eventStore.history({ kind: 'workload', id }))
        types.push(type);
      return types;
    },
    /** The leak gauges of the fleet. */
    leaks: () => readLeaks(views),
    /** The workloads of the fleet that are not terminated. */
    workloads: () => readList<WorkloadState>(views, projectionId(workloads), allWorkloads),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Browsers that outlive their provisioner. */
function withoutEnd(machine: SimulatedBrowsers): Browsers {
  return { ...machine, [Symbol.asyncDispose]: async () => undefined };
}

/** A cut between a provisioner and its ports: calls after it never settle. */
function createCut() {
  let isMade = false;
  return {
    make: () => void (isMade = true),
    isMade: () => isMade,
    /** A delivery after the cut goes back to the queue. */
    workQueue:
      (open: OpenWorkQueue): OpenWorkQueue =>
      async (name, subjects, bound) => {
        const workQueue = await open(name, subjects, bound);
        async function next(waitMs: number, signal: AbortSignal) {
          const delivery = await workQueue.next(waitMs, signal);
          if (!isMade || delivery === null) return delivery;
          delivery.retryAfter(0);
          return new Promise<never>(() => undefined);
        }
        return { ...workQueue, next };
      },
    wrap<Port extends object>(port: Port): Port {
      return new Proxy(port, {
        get(target, name): unknown {
          // A getter of a class reads its private members of the object itself.
          const value: unknown = Reflect.get(target, name);
          if (typeof value !== 'function') return value;
          return (...args: unknown[]): unknown =>
            isMade ? new Promise(() => undefined) : Reflect.apply(value, target, args);
        },
      });
    },
  };
}

/** The provisioners' reads with the errors of `unreadable`; the test's own reads do not fail. */
function failing(
  eventStore: EventStore,
  unreadable: ReadonlyMap<string, () => Error | null>,
): EventStore['readLast'] {
  return async (aggregate, options) => {
    const error = 'id' in aggregate ? unreadable.get(aggregate.id)?.() : null;
    if (error) throw error;
    return eventStore.readLast(aggregate, options);
  };
}

function rethrow(error: unknown, what: string): never {
  throw new Error(`${what}: ${JSON.stringify(error)}`);
}

import type { RecordedEvent } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { json } from '#test/support/clients/command-line.ts';
import { auditLog } from './audit-event-store.ts';
import { openLog } from './service-log.ts';
import { eventually, startService, type Answer, type RunningService } from './service.ts';
import { MASTER_KEY } from './two-processes.ts';

/**
 * A new session for which a browser waits (warm), one whose options need a browser of its own
 * (cold), or an active session that is being stopped (stopping).
 */
export type SessionKind = 'warm' | 'cold' | 'stopping';

/** A row of `bss servers list --json`. */
export type ServerRow = {
  id: string;
  status: string;
  leaks: number | null;
};

/**
 * Time for a process or an engine to return on a busy machine. A difference that no event hints at
 * is found within a minute, and corrected where it is found again.
 */
const WITHIN_MS = 180_000;
const PLENTY = { max: { requests_per_minute: 1_000_000, concurrent_sessions: 1e5 } };

/**
 * A service in two processes, as in production: the main one with everything but browsers (its own
 * server is drained), and a provisioner, whose server has all sessions.
 */
export type SplitService = Awaited<ReturnType<typeof startSplitService>>;

/** @param place variables of the provisioner alone, laid over `env` of both */
export async function startSplitService(
  env: Record<string, string>,
  place: Record<string, string>,
) {
  await using stack = new AsyncDisposableStack();
  const common = { MASTER_KEY, TIERS: JSON.stringify(PLENTY), ...env };
  const main = stack.use(await startService(common));
  const [drained = ''] = (await servers(main)).map(({ id }) => id);
  const own = { ...common, ROLES: 'provisioner', ...place };
  const provisioner = stack.use(await startService(own, { beside: main }));
  const ids = (await servers(main)).map(({ id }) => id);
  const serverId = ids.find((id) => id !== drained) ?? '';
  await json(main, 'servers', 'drain', drained);

  async function server(): Promise<ServerRow | undefined> {
    return (await servers(main)).find(({ id }) => id === serverId);
  }
  /** Repeats a request while a part of the service is unavailable. */
  async function insist(ask: () => Promise<Answer>, what: string): Promise<Answer['body']> {
    return eventually(
      async () => {
        const answer = await ask().catch(() => null);
        if (answer === null || answer.status >= 500) return false;
        if (answer.status >= 400) throw new Error(`${what}: ${JSON.stringify(answer.body)}`);
        return answer.body;
      },
      what,
      WITHIN_MS,
    );
  }
  async function pool(): Promise<Record<string, number>> {
    const status = await insist(() => main.request('GET', '/api/status'), 'the status');
    return status.autoscaler.pool_status as Record<string, number>;
  }
  const read = (id: string) => insist(() => main.request('GET', `/api/sessions/${id}`), id);

  async function create(kind: SessionKind): Promise<string> {
    const body = { duration: '1h', ...(kind === 'cold' ? { locale: 'fr-FR' } : {}) };
    const headers = { prefer: 'respond-async', 'idempotency-key': crypto.randomUUID() };
    const ask = () => main.request('POST', '/api/sessions', body, headers);
    return (await insist(ask, 'a session is created')).id;
  }

  const all = stack.move();
  return {
    main,
    provisioner,
    serverId,
    server,
    read,
    /** Resolves with a session's id once the event store has that event of its life. */
    async bringTo(event: string, kind: SessionKind): Promise<string> {
      const id = kind === 'stopping' ? await create('warm') : null;
      if (id !== null)
        await eventually(async () => (await read(id)).status === 'active', `${id} is active`);
      const { come } = await watchFor(main, event, serverId);
      // Whether this is answered depends on which part is killed meanwhile.
      if (id !== null) void main.request('DELETE', `/api/sessions/${id}`).catch(() => undefined);
      const created = id ?? (await create(kind));
      await come;
      return created;
    },
    /** Resolves with `active` or the reason of the session's end, whichever comes. */
    outcomeOf: (id: string): Promise<string> =>
      eventually(
        async () => {
          const { status, ended_reason: reason } = await read(id);
          return status === 'active' ? 'active' : (reason as string | null);
        },
        `${id} is active or has ended`,
        WITHIN_MS,
      ),
    /** Resolves once a browser is idle and no session has one. */
    untilReady: () =>
      eventually(
        async () => {
          const { idle = 0, busy } = await pool();
          return idle > 0 && busy === 0;
        },
        'a browser waits',
        WITHIN_MS,
      ),
    /**
     * Resolves once nothing leaks and event store, read model, pool and engine agree.
     * @param expected `containers`: counts that must equal the number of browsers in the pool;
     *   `idle`: how many browsers wait, at least one by default
     */
    untilConsistent: (
      expected: { containers?: () => number[]; idle?: number } = {},
    ): Promise<boolean> =>
      eventually(
        async () => {
          // A request costs less than a command, which is asked once the pool has settled.
          const { total = 0, idle = 0, busy } = await pool();
          const isIdleRight = expected.idle === undefined ? idle >= 1 : idle === expected.idle;
          if (!isIdleRight || total !== idle + (busy ?? 0)) return false;
          const row = await server();
          if (row?.status !== 'live' || row.leaks !== 0) return false;
          const { sessions } = await auditLog(main);
          const states = [...sessions.values()].map(({ state }) => state);
          if (!states.every(({ status }) => status === 'active' || isFinal(status))) return false;
          const active = states.filter(({ status }) => status === 'active').length;
          if (expected.containers?.().some((count) => count !== total) === true) return false;
          return busy === active;
        },
        'nothing leaks and all parts agree',
        WITHIN_MS,
      ),
    /** How often the event store says that the provisioner's server was lost. */
    async timesLost(): Promise<number> {
      const history = (await json(main, 'servers', 'history', serverId)) as { type: string }[];
      return history.filter(({ type }) => type === 'server.lost').length;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

async function servers(main: RunningService): Promise<ServerRow[]> {
  return (await json(main, 'servers', 'list')) as ServerRow[];
}

/** The next event of the type from now on, of a session or of a browser of that server. */
export async function watchFor(service: RunningService, type: string, serverId: string) {
  const opened = await openLog(service);
  const stop = new AbortController();
  const after = await opened.eventStore.lastSequence();
  const { signal } = stop;
  const isIt = (event: RecordedEvent) =>
    event.type === type &&
    (event.state === null || !('serverId' in event.state) || event.state.serverId === serverId);
  async function follow(): Promise<void> {
    const options = { subjects: filters.all, after, signal, onUnreadable: () => undefined };
    for await (const batch of opened.eventStore.subscribe(options))
      if (batch.some(isIt)) stop.abort();
    await opened[Symbol.asyncDispose]();
  }
  const moment = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  void follow();
  return { come: moment };
}

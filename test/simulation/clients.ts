import type { EventMetadata } from '#events/envelope.ts';
import { handleCreateSession } from '#src/commands/create-session.ts';
import type { CreateDependencies } from '#src/commands/create-session.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { untilReadable } from '#src/commands/read-your-writes.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { derivedId, newId } from '#src/kernel/ids.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { Random } from '#test/support/random.ts';
import type { Cluster, Place } from './cluster.ts';
import { pause, type World } from './world.ts';

const MINUTE = 60_000;
const LIFETIME_MAX_MS = 3 * MINUTE;
/** Most are shorter than the API allows, so that a run is over soon; the rules are the same. */
const SHORT_MS = [20_000, 50_000] as const;

export type Organization = { id: string; credits: number; concurrentSessions: number };

/** An answer that a client got; the log must agree with it. */
export type Answer =
  | { to: 'create'; sessionId: string; key: string | null }
  | { to: 'extend'; sessionId: string; key: string | null; commandId: string; expiresAt: string }
  | { to: 'stop'; sessionId: string }
  /** `sessionId`: of a create that was tried once, which must not have created it. */
  | { to: 'refused'; code: string; commandId: string; sessionId: string | null };

export type Clients = {
  /** Works until the time (by the simulation's clock), and then finishes what it has begun. */
  run(until: number): Promise<void>;
  readonly answers: Answer[];
};

/** How long a client waits for an answer before it takes the connection for lost. */
const CLIENT_WAITS_MS = [300, 20_000] as const;
const CREATE_WAIT_MS = 10_000;
/** Attempts at one request; a client without a key has one. */
const ATTEMPTS_MAX = 4;

/** Clients of one organization: they create, extend, use and stop sessions, and retry. */
export function createClients(world: World, cluster: Cluster, organization: Organization): Clients {
  const answers: Answer[] = [];
  const open: string[] = [];
  let requests = 0;

  async function client(number: number, until: number): Promise<void> {
    const random = world.random(`client ${organization.id} ${number}`);
    const me = `client ${organization.id}/${number}`;
    while (world.time.now() < until) {
      await pause(random.pauseMs(4_000));
      const sessionId = open.length === 0 ? null : random.pick(open);
      const dice = random.next();
      if (sessionId === null || dice < 0.45) await create(me, random);
      else if (dice < 0.65) await extend(me, random, sessionId);
      else if (dice < 0.9) await stop(me, random, sessionId);
      else await use(me, random, sessionId);
    }
  }

  /** Sends a request to a running API; null: no answer in time, or an error. */
  async function send<Result>(
    random: Random,
    handle: (api: CreateDependencies) => Promise<Result>,
  ): Promise<Result | null> {
    const apis = cluster.places.filter((place) => place.running?.api != null);
    if (apis.length === 0) return null;
    const { process, running } = random.pick<Place>(apis);
    const api = running?.api;
    if (process === null || api == null) return null;
    // The handler goes on when its client has given up.
    const handled = world.time.runAs(process, () => handle(api));
    const failed = handled.catch((error: unknown) => {
      world.tell(process.name, `answers 503: ${String(error)}`);
      return null;
    });
    return Promise.race([failed, sleep(random.integer(...CLIENT_WAITS_MS)).then(() => null)]);
  }

  /** Repeats a request until it is answered, at most as often as clients do. */
  async function insist<Result>(
    random: Random,
    isKeyed: boolean,
    handle: (api: CreateDependencies, attempt: number) => Promise<Result>,
  ): Promise<Result | null> {
    for (let attempt = 1; attempt <= (isKeyed ? ATTEMPTS_MAX : 1); attempt += 1) {
      const result = await send(random, (api) => handle(api, attempt));
      if (result !== null) return result;
      await pause(random.pauseMs(1_000));
    }
    return null;
  }

  async function create(me: string, random: Random): Promise<void> {
    requests += 1;
    const key = random.chance(0.6) ? `${me} ${requests}` : null;
    const { id: organizationId, concurrentSessions } = organization;
    const id = key === null ? newId('ses') : derivedId('ses', organizationId, key);
    const asked = {
      name: `session ${requests}`,
      description: '',
      userId: 'user_1',
      labels: {},
      browser: { viewport: null, locale: random.chance(0.2) ? 'de-DE' : null, timezone: null },
      durationMs: durationOf(random),
      idleTimeoutMs: random.chance(0.2) ? MINUTE : null,
      fingerprint: key,
    };
    const waitMs = random.chance(0.3) ? 0 : CREATE_WAIT_MS;
    let commandId = '';
    let attempts = 0;
    const result = await insist(random, key !== null, async (api, attempt) => {
      const metadata = metadataOf(me);
      ({ commandId } = metadata);
      attempts = attempt;
      const created = await handleCreateSession(api, {
        identity: { organizationId, id },
        command: { type: 'CreateSession', ...asked, now: api.context.now() },
        metadata,
        limits: { concurrentSessions },
        admitted: Promise.resolve(null),
        waitMs,
        span: null,
      });
      return created;
    });
    if (result === null) return;
    if (isRejection(result)) {
      const sessionId = attempts > 1 ? null : id;
      return refuse(me, 'create', result.code, { commandId, sessionId });
    }
    world.tell(me, `has created ${id}, which is ${result.state.status}`);
    answers.push({ to: 'create', sessionId: id, key });
    open.push(id);
  }

  async function extend(me: string, random: Random, sessionId: string): Promise<void> {
    requests += 1;
    const key = random.chance(0.5) ? `${me} ${requests}` : null;
    const byMs = durationOf(random);
    let commandId = '';
    const result = await insist(random, key !== null, async (api) => {
      const metadata = metadataOf(me);
      ({ commandId } = metadata);
      const hash = key === null ? null : derivedId('ext', sessionId, key);
      const extended = await handleSessionCommand(
        api.context,
        { organizationId: organization.id, id: sessionId },
        {
          type: 'ExtendSession',
          byMs,
          maxLifetimeMs: LIFETIME_MAX_MS,
          duration: `${byMs} ms`,
          ...(hash === null ? {} : { repeatable: { key: hash, fingerprint: 'same' } }),
          now: api.context.now(),
        },
        metadata,
      );
      if (!isRejection(extended)) await untilReadable(api.views, extended.sequence);
      return extended;
    });
    if (result === null) return;
    if (isRejection(result))
      return refuse(me, 'extend', result.code, { commandId, sessionId: null });
    const { expiresAt } = result.state;
    const hash = key === null ? null : derivedId('ext', sessionId, key);
    world.tell(me, `has extended ${sessionId} to ${expiresAt}`);
    answers.push({ to: 'extend', sessionId, key: hash, commandId, expiresAt });
  }

  async function stop(me: string, random: Random, sessionId: string): Promise<void> {
    const result = await insist(random, true, async (api) => {
      const identity = { organizationId: organization.id, id: sessionId };
      const now = api.context.now();
      const command = { type: 'StopSession', reason: 'user', now } as const;
      const handled = await handleSessionCommand(api.context, identity, command, metadataOf(me));
      if (!isRejection(handled)) await untilReadable(api.views, handled.sequence);
      return handled;
    });
    if (result === null) return;
    if (isRejection(result)) {
      world.tell(me, `stop of ${sessionId}: ${result.code}`);
      return;
    }
    world.tell(me, `has stopped ${sessionId}, which is ${result.state.status}`);
    answers.push({ to: 'stop', sessionId });
    if (open.includes(sessionId)) open.splice(open.indexOf(sessionId), 1);
  }

  async function use(me: string, random: Random, sessionId: string): Promise<void> {
    await send(random, (api) => {
      const identity = { organizationId: organization.id, id: sessionId };
      const command = { type: 'RecordAccess', via: 'cdp', now: api.context.now() } as const;
      return handleSessionCommand(api.context, identity, command, metadataOf(me));
    });
  }

  function refuse(
    me: string,
    what: string,
    code: string,
    of: { commandId: string; sessionId: string | null },
  ): void {
    world.tell(me, `${what} is refused: ${code}`);
    answers.push({ to: 'refused', code, ...of });
  }

  return {
    answers,
    async run(until) {
      await Promise.all([client(1, until), client(2, until)]);
    },
  };
}

function durationOf(random: Random): number {
  return random.chance(0.2) ? random.integer(1, 2) * MINUTE : random.integer(...SHORT_MS);
}

function metadataOf(actor: string): EventMetadata {
  return {
    actor: { kind: 'user', id: actor.replaceAll(/[^a-z0-9]/g, '-') },
    commandId: newId('cmd'),
    correlationId: newId('cor'),
    causationId: null,
  };
}

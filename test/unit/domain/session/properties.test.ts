import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encode } from '#events/codec.ts';
import type { LedgerState } from '#events/ledger.ts';
import { sessionEvents, type SessionEvent, type SessionState } from '#events/session.ts';
import { isRejection, type ErrorName } from '#src/kernel/errors.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { carryForward } from '#src/commands/carry-forward.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import {
  decideLedger,
  emptyLedger,
  evolveLedger,
  ledgerCommandFor,
} from '#src/kernel/domain/organization/ledger.ts';
import { decideCarryForward } from '#src/kernel/domain/carry-forward.ts';
import { decide } from '#src/kernel/domain/session/decide.ts';
import { isFinal, transitions } from '#src/kernel/domain/session/session.ts';
import { T0 } from '#test/support/examples.ts';
import {
  disturbances,
  means,
  sessionIds,
  steps,
  type Disturbance,
  type RandomCommand,
  type Step,
} from '#test/support/events/random-life.ts';
import { runs } from '#test/support/seeds/seeds.ts';

const organizationId = 'org_acme';
const ledgerRef = { kind: 'ledger', organizationId } as const;
type Means = { credits: number; concurrentSessions: number };
/** An organization's ledger and sessions, folded. */
type World = { ledger: LedgerState; sessions: Map<string, SessionState> };

describe('for all commands and reports, in every order', () => {
  it('every session keeps to the table of transitions, and slots and credits are conserved', () => {
    fc.assert(
      fc.property(means, steps, (has, life) => runPure(has, life)),
      { numRuns: runs(400) },
    );
  });

  it('the same holds with an event store, with concurrent commands and conflicts at every append', async () => {
    await fc.assert(fc.asyncProperty(means, steps, disturbances, runThroughLog), {
      numRuns: runs(60),
    });
  });
});

it('random lives cover every event and every rejection of a session', () => {
  const seen = new Set<string>();
  const note = (what: string) => seen.add(what);
  const lives = fc.sample(fc.tuple(means, steps), { numRuns: 2_000, seed: 5 });
  for (const [has, life] of lives) runPure(has, life, note);
  const refusals: ErrorName[] = [
    'SESSION_NOT_FOUND',
    'IDEMPOTENCY_CONFLICT',
    'SESSION_NOT_ACTIVE',
    'SESSION_NOT_READY',
    'SESSION_ENDED',
    'PROFILE_READ_ONLY',
    'HANDOFF_CONFLICT',
    'HANDOFF_NOT_FOUND',
    'SHARE_NOT_FOUND',
    'INVALID_DURATION',
    'INSUFFICIENT_CREDITS',
    'SESSION_LIMIT_EXCEEDED',
  ];
  expect([...seen].toSorted()).toEqual([...Object.keys(sessionEvents), ...refusals].toSorted());
});

/** Decides as src/commands/handle-session-command.ts does, without an event store. */
function runPure(has: Means, life: readonly Step[], note?: (what: string) => void): void {
  const world = newWorld(has);
  let now = T0;
  for (const { sessionId, afterMs, command } of life) {
    now += afterMs;
    const decided = decideAll(world, sessionId, command.at(now), has);
    if (isRejection(decided)) {
      note?.(decided.code);
      continue;
    }
    world.ledger = decided.ledger;
    for (const event of decided.events) {
      note?.(event.type);
      take(world, sessionId, event);
    }
    expectConserved(world, has);
  }
}

function newWorld({ credits }: Means): World {
  const granted = { type: 'ledger.credits-granted', data: { credits } } as const;
  return { ledger: evolveLedger(null, granted), sessions: new Map() };
}

/** A command's effects on a session, and the ledger after the ledger commands that they require. */
function decideAll(world: World, sessionId: string, command: RandomCommand, has: Means) {
  const state = frozen(world.sessions.get(sessionId) ?? null);
  const events = command.type === 'CarryForward' ? carried(state) : decide(command, state);
  if (isRejection(events)) return events;
  let { ledger } = world;
  for (const event of events) {
    const move = ledgerCommandFor(event, sessionId, has);
    if (move === null) continue;
    const lines = decideLedger(move, frozen(ledger));
    if (isRejection(lines)) return lines;
    ledger = lines.reduce(evolveLedger, ledger);
  }
  return { events, ledger };
}

/** Of an aggregate whose last event is archived. */
function carried(state: SessionState | null): SessionEvent[] {
  return decideCarryForward('session', { state, sequence: 1 }, 1) as SessionEvent[];
}

/** Folds an event in, after checks that the table allows it and that it fits its schema. */
function take(world: World, id: string, event: SessionEvent): void {
  const aggregate = { kind: 'session', organizationId, id } as const;
  const before = world.sessions.get(id) ?? null;
  const { from, to } = transitions[event.type];
  expect(from, `${event.type} of a session that is ${before?.status}`).toContain(
    before?.status ?? null,
  );
  const state = evolve<'session'>(aggregate, frozen(before), event);
  expect(state.status).toBe(to === 'same' ? before?.status : to);
  encode({
    aggregate,
    ...event,
    id: 'evt_1',
    time: new Date(T0).toISOString(),
    metadata,
    state,
  });
  world.sessions.set(id, state);
}

function expectConserved({ ledger, sessions }: World, { credits }: Means): void {
  const all = [...sessions.values()];
  const living = all.filter(({ status }) => !isFinal(status));
  expect(ledger.creditsGranted).toBe(credits);
  expect(ledger.creditsAvailable + ledger.creditsReserved + ledger.creditsUsed).toBe(credits);
  expect(ledger.slotsInUse).toBe(living.length);
  expect(ledger.creditsReserved).toBe(sum(living.map((session) => session.creditsReserved)));
  expect(ledger.creditsUsed).toBe(sum(all.map((session) => session.creditsUsed)));
  const { egress, ...numbers } = ledger;
  expect(Math.min(...Object.values(numbers))).toBeGreaterThanOrEqual(0);
  expect(egress).toEqual(egressOf(all));
}

/** What the browsers of ended sessions sent, received and were refused. */
function egressOf(sessions: readonly SessionState[]) {
  const ended = sessions.filter(({ status }) => isFinal(status));
  const counted = ended.flatMap(({ egressTraffic: traffic }) =>
    traffic === undefined ? [] : [...traffic.hosts, traffic.others],
  );
  if (counted.length === 0) return undefined;
  return {
    bytesSent: sum(counted.map(({ bytesSent }) => bytesSent)),
    bytesReceived: sum(counted.map(({ bytesReceived }) => bytesReceived)),
    refused: sum(counted.map(({ refused }) => refused)),
  };
}

function sum(numbers: readonly (number | null)[]): number {
  return numbers.reduce<number>((total, number) => total + (number ?? 0), 0);
}

/**
 * The same life through `handleSessionCommand` over the memory event store; the stored events are
 * then checked.
 */
async function runThroughLog(
  has: Means,
  life: readonly Step[],
  disturbing: Iterator<Disturbance>,
): Promise<void> {
  const eventStore = createMemoryEventStore();
  await grant(eventStore, has.credits);
  const ask = createAsker(has);
  const disturbed = disturb(eventStore, disturbing, ask);
  let now = T0;
  for (const step of life) {
    now += step.afterMs;
    await ask(disturbed, step, now);
  }
  expectConserved(await readAll(eventStore), has);
}

type Ask = (eventStore: EventStore, step: Step, now: number) => Promise<unknown>;

function createAsker(has: Means): Ask {
  let commands = 0;
  return async (eventStore, { sessionId, command }, now) => {
    commands += 1;
    const context = createCommandContext(eventStore, () => now);
    const identity = { organizationId, id: sessionId };
    const why = { ...metadata, commandId: `cmd_${commands}` };
    const asked = command.at(now);
    if (asked.type !== 'CarryForward')
      return handleSessionCommand(context, identity, asked, why, has);
    const upTo = await eventStore.lastSequence();
    await carryForward(context, ledgerRef, upTo, { ...why, commandId: `${why.commandId}_ledger` });
    return carryForward(context, { kind: 'session', ...identity }, upTo, why);
  };
}

/**
 * An event store whose appends meet a conflict without reason, or a concurrent command that was
 * faster.
 */
function disturb(eventStore: EventStore, disturbing: Iterator<Disturbance>, ask: Ask): EventStore {
  return {
    ...eventStore,
    async append(changes) {
      const next: Disturbance = disturbing.next().value;
      if (next === 'conflict') return { outcome: 'conflict' };
      const now = Date.parse(changes[0]?.events[0]?.time ?? '');
      if (next !== 'none') await ask(eventStore, next, now);
      return eventStore.append(changes);
    },
  };
}

async function grant(eventStore: EventStore, credits: number): Promise<void> {
  const line = { type: 'ledger.credits-granted', data: { credits } } as const;
  await handleCommand<'ledger'>(
    createCommandContext(eventStore, () => T0),
    ledgerRef,
    () => [line],
    metadata,
  );
}

/**
 * Folds all histories from the beginning: every state that an event carries must equal that fold.
 */
async function readAll(eventStore: EventStore): Promise<World> {
  const world: World = { ledger: emptyLedger, sessions: new Map() };
  for await (const event of eventStore.history<'ledger'>(ledgerRef)) {
    world.ledger = evolveLedger(world.ledger, event);
    expect(event.state).toEqual(world.ledger);
  }
  for (const id of sessionIds)
    for await (const event of eventStore.history<'session'>({
      kind: 'session',
      organizationId,
      id,
    })) {
      take(world, id, event);
      expect(event.state).toEqual(world.sessions.get(id));
    }
  return world;
}

const metadata = {
  actor: { kind: 'user', id: 'user_1' },
  commandId: 'grant_1',
  correlationId: 'cor_1',
  causationId: null,
} as const;

/** Frozen, because `decide` and `evolve` must not change their arguments. */
function frozen<Value extends object | null>(value: Value): Value {
  return value === null ? value : Object.freeze(value);
}

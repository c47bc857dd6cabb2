import { Unavailable } from '#src/kernel/errors.ts';
import { createRandom, type Random } from '#test/support/random.ts';
import type { Owner, VirtualTime } from '#test/support/time/virtual-time.ts';

/** What goes wrong, and how often: shares of calls, 0 to 1. Drawn by the seed; 0 after the heal. */
export type Rates = {
  /** An answer that takes up to two seconds. */
  slow: number;
  /** A call that has no effect and fails. */
  refused: number;
  /** A call that has its effect, and whose answer does not arrive. */
  answerLost: number;
  /** Of the appends whose answer is lost: those that are stored only later. */
  storedLate: number;
  /** A read of a replica that lacks the newest events. */
  stale: number;
  /** A process that ends at the call: before its effect, or after it. */
  crash: number;
  /** A batch of events that reaches a subscriber seconds later. */
  late: number;
  launchFails: number;
  stopFails: number;
};

/** What all parts of one simulation share. */
export type World = {
  seed: number;
  time: VirtualTime;
  /** The owner of the servers, which do not end: event store, read model, queues. */
  servers: Owner;
  rates: Rates;
  random(name: string): Random;
  /** Adds a line to the story; it is kept only if the caller of `simulate` asked for it. */
  tell: (who: string, what: string) => void;
};

/** A process of the service. Ended, its code does not go on: no call of it is answered. */
export type Process = Owner & {
  readonly name: string;
  /** How far its clock is ahead, in milliseconds. */
  skewMs: number;
  /** The servers that it does not reach. */
  cutOff: Set<'event-log' | 'read-model'>;
  readonly died: AbortController;
  readonly onReconnect: Set<() => void>;
};

/** Each kind of fault occurs in about half of the seeds, so that it also meets few others. */
export function drawRates(seed: number): Rates {
  const random = createRandom(seed, 'rates');
  const upTo = (most: number) => (random.chance(0.5) ? random.next() * most : 0);
  return {
    slow: upTo(0.05),
    refused: upTo(0.05),
    answerLost: upTo(0.06),
    storedLate: upTo(0.6),
    stale: upTo(0.4),
    crash: upTo(0.003),
    late: upTo(0.1),
    launchFails: upTo(0.9),
    stopFails: upTo(0.2),
  };
}

export const noFaults: Rates = {
  slow: 0,
  refused: 0,
  answerLost: 0,
  storedLate: 0,
  stale: 0,
  crash: 0,
  late: 0,
  launchFails: 0,
  stopFails: 0,
};

export function createProcess(name: string): Process {
  const died = new AbortController();
  const onReconnect = new Set<() => void>();
  return { name, isDead: false, skewMs: 0, cutOff: new Set(), died, onReconnect };
}

/** Ends a process as `kill -9` does. */
export function kill(process: Process): void {
  process.isDead = true;
  process.died.abort();
}

/** What a call that an ended process has made resolves with: nothing, ever. */
export function never<Result>(): Promise<Result> {
  return new Promise(() => {});
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

/** Calls from one process to one server, with the faults of the seed. */
export type Network = ReturnType<typeof createNetwork>;

/** Latency of an undisturbed call, the mean in milliseconds. */
const LATENCY_MS = 1;
/** The most that a slow answer takes. */
const SLOW_MS = 2_000;

export function createNetwork(world: World, process: Process) {
  const { time, servers, rates } = world;
  const random = world.random(`network of ${process.name}`);

  /** Runs the server's side of a call: it goes on if the caller ends. */
  function atServer<Result>(effect: () => Result): Result {
    return time.runAs(servers, effect);
  }

  async function mayCrash(what: string, when: string): Promise<void> {
    if (!process.isDead && random.chance(rates.crash)) {
      world.tell(process.name, `is killed ${when} ${what}`);
      kill(process);
    }
    if (process.isDead) await never();
  }

  function latencyMs(): number {
    return random.chance(rates.slow) ? random.integer(50, SLOW_MS) : random.pauseMs(LATENCY_MS);
  }

  /** The way there. @throws Unavailable if the call does not reach the server */
  async function reach(part: Unavailable['part'], what: string): Promise<void> {
    await mayCrash(what, 'before');
    await pause(latencyMs());
    const isCutOff = process.cutOff.has(part as 'event-log');
    if (!isCutOff && !random.chance(rates.refused)) return;
    await pause(random.integer(20, SLOW_MS));
    world.tell(process.name, `${what}: does not reach the ${part}`);
    throw new Unavailable(part);
  }

  /** The way back. @throws Unavailable if the answer is lost */
  async function answer(part: Unavailable['part'], what: string): Promise<void> {
    await mayCrash(what, 'after');
    if (random.chance(0.3)) await pause(latencyMs());
    if (!random.chance(rates.answerLost)) return;
    await pause(SLOW_MS);
    world.tell(process.name, `${what}: the answer is lost`);
    throw new Unavailable(part);
  }

  async function call<Result>(
    part: Unavailable['part'],
    what: string,
    effect: () => Promise<Result>,
  ): Promise<Result> {
    await reach(part, what);
    const result = await atServer(effect);
    await answer(part, what);
    return result;
  }
  return { atServer, reach, mayCrash, call, latencyMs, random, rates };
}

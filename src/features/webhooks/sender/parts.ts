import { createHash } from 'node:crypto';
import { createNotifier } from '#src/kernel/async/notifier.ts';
import { newId } from '#src/kernel/ids.ts';
import { LEASE_MS, type Leases } from '#src/kernel/messaging/leases.ts';

/**
 * The webhooks are divided into so many parts by their ids, each of which one process serves: a
 * process renews this many leases at most, however many webhooks there are.
 */
export const PARTS = 16;
/** A process takes no more free parts at once, so that those that start together share. */
const TAKEN_AT_ONCE = 4;
/** Processes hold a lease under such an id, by which others count them. */
const HOLDER = 'whs';

export type Parts = {
  /** Whether this process serves the webhook now. */
  isOurs(webhookId: string): boolean;
  /** What is wanted may have changed. */
  look(): void;
  /** Releases the parts; what works on them has ended. */
  release(): Promise<void>;
  /** Resolves once no part is taken any more, after the signal has aborted. */
  ended: Promise<void>;
};

type Options = {
  /** The webhooks that there are: only their parts are taken. */
  wanted: () => Iterable<string>;
  /** Called after each change; resolves when the work on what is not ours any more has ended. */
  onChange: () => Promise<void>;
  signal: AbortSignal;
  /** Lifetime of a lease without renewal, in ms; default: that of the leases. */
  leaseMs?: number;
};

/**
 * Takes parts that have webhooks, and keeps its share of them until the signal aborts. Without
 * webhooks it renews nothing.
 */
export function keepParts(leases: Leases, options: Options): Parts {
  const keeper = new Keeper(leases, options);
  return {
    isOurs: (webhookId) => keeper.isOurs(partOf(webhookId)),
    look: () => keeper.look(),
    release: () => keeper.release(),
    ended: keeper.keep(),
  };
}

class Keeper {
  readonly #holder = newId(HOLDER);
  readonly #leases: Leases;
  readonly #options: Options;
  readonly #renewEveryMs: number;
  /** A part whose lease could not be renewed for so long is left: another process may have it. */
  readonly #giveUpMs: number;
  /** With the time of the last renewal (monotonic, ms). */
  readonly #held = new Map<number, number>();
  /** Beyond its share: held until the work on them has ended, then another process takes them. */
  readonly #givenUp = new Set<number>();
  /** Of those, the ones whose work has ended. */
  readonly #releasable = new Set<number>();
  /** The parts that have webhooks. */
  #wanted = new Set<number>();
  /** Processes that keep parts, as far as is known. */
  #processes = 1;
  readonly #looks = createNotifier();
  /** Whether a part is wanted that was not when the round began. */
  #isWantedNew = false;

  constructor(leases: Leases, options: Options) {
    this.#leases = leases;
    this.#options = options;
    const { leaseMs = LEASE_MS } = options;
    this.#renewEveryMs = leaseMs / 3;
    this.#giveUpMs = leaseMs * 0.8;
  }

  async keep(): Promise<void> {
    const { signal, onChange } = this.#options;
    while (!signal.aborted) {
      this.#wanted = partsOf(this.#options.wanted());
      this.#isWantedNew = false;
      await this.#releaseGivenUp();
      await Promise.all([...this.#held].map(([part, at]) => this.#renew(part, at)));
      if (this.#wanted.size > 0) await this.#count();
      const taken = await this.#take();
      const given = this.#giveUp();
      void onChange().then(() => this.#end(given));
      if (!this.#isWantedNew) await this.#pause(taken);
    }
  }

  /** Begins the next round at once if a part is wanted that was not. */
  look(): void {
    const wanted = partsOf(this.#options.wanted());
    if ([...wanted].every((part) => this.#wanted.has(part))) return;
    this.#isWantedNew = true;
    this.#looks.notify();
  }

  /** Where nothing is wanted and nothing held, until something is wanted. */
  #pause(taken: number): Promise<void> {
    const isIdle = this.#wanted.size === 0 && this.#held.size === 0;
    const ms = taken > 0 ? this.#renewEveryMs / 10 : this.#renewEveryMs;
    return this.#looks.wait(this.#options.signal, isIdle ? undefined : ms);
  }

  /** By the time of the renewal: whatever `keep` waits for, another process may have it then. */
  isOurs(part: number): boolean {
    const renewedAt = this.#held.get(part);
    const isGone = renewedAt === undefined || this.#givenUp.has(part);
    return !isGone && performance.now() - renewedAt < this.#giveUpMs;
  }

  async release(): Promise<void> {
    const names = [...this.#held.keys()].map(nameOf);
    await Promise.allSettled(
      [this.#holder, ...names].map((name) => this.#leases.release(name, this.#holderOf(name))),
    );
    this.#held.clear();
  }

  /** The lease by which this process is counted has no holder. */
  #holderOf(name: string): string | undefined {
    return name === this.#holder ? undefined : this.#holder;
  }

  /** null: the store of leases does not answer, which is logged elsewhere. */
  #acquire(part: number): Promise<boolean | null> {
    return this.#leases.acquire(nameOf(part), this.#holder).catch(() => null);
  }

  /** A part that has no webhooks any more is not renewed: it runs out, or is wanted again. */
  async #renew(part: number, renewedAt: number): Promise<void> {
    const at = performance.now();
    const isHeld = this.#wanted.has(part) ? await this.#acquire(part) : null;
    if (isHeld === true) this.#held.set(part, at);
    else if (isHeld === false || at - renewedAt > this.#giveUpMs) this.#drop(part);
  }

  #drop(part: number): void {
    this.#held.delete(part);
    this.#givenUp.delete(part);
    this.#releasable.delete(part);
  }

  /** Counts the processes that share. Without an answer their number stays as it is. */
  async #count(): Promise<void> {
    try {
      await this.#leases.renew(this.#holder);
      const names = [...(await this.#leases.held())];
      const processes = names.filter((name) => name.startsWith(`${HOLDER}_`)).length;
      this.#processes = Math.max(1, processes);
    } catch {
      // The store of leases does not answer, which is logged elsewhere.
    }
  }

  /** As many parts as each process has if all have the same number. */
  #share(): number {
    return Math.ceil(this.#wanted.size / this.#processes);
  }

  /** Takes free parts up to its share. @returns how many */
  async #take(): Promise<number> {
    let taken = 0;
    for (const part of shuffled([...this.#wanted].filter((one) => !this.#held.has(one)))) {
      const at = performance.now();
      const hasShare = this.#kept().length >= this.#share();
      if (taken >= TAKEN_AT_ONCE || hasShare || this.#options.signal.aborted) break;
      const isTaken = await this.#acquire(part);
      // Each further one would wait for its time-out, too, and the renewals with it.
      if (isTaken === null) break;
      if (!isTaken) continue;
      this.#held.set(part, at);
      taken += 1;
    }
    return taken;
  }

  /** The parts with webhooks that it has and keeps. */
  #kept(): number[] {
    const isKept = (part: number) => this.#wanted.has(part) && !this.#givenUp.has(part);
    return [...this.#held.keys()].filter(isKept);
  }

  /** What it has beyond its share. */
  #giveUp(): number[] {
    const given = this.#kept().slice(this.#share());
    for (const part of given) this.#givenUp.add(part);
    return given;
  }

  #end(given: readonly number[]): void {
    for (const part of given) if (this.#givenUp.has(part)) this.#releasable.add(part);
  }

  async #releaseGivenUp(): Promise<void> {
    await Promise.all(
      [...this.#releasable].map(async (part) => {
        this.#drop(part);
        // A lease that is not released runs out.
        await this.#leases.release(nameOf(part), this.#holder).catch(() => undefined);
      }),
    );
  }
}

function nameOf(part: number): string {
  return `webhooks-${part}`;
}

/** The name of the lease of a webhook's part. */
export function leaseOf(webhookId: string): string {
  return nameOf(partOf(webhookId));
}

function partOf(webhookId: string): number {
  return (createHash('sha256').update(webhookId).digest()[0] ?? 0) % PARTS;
}

/** The parts of the webhooks; no more are looked at than it takes to find all. */
function partsOf(webhookIds: Iterable<string>): Set<number> {
  const parts = new Set<number>();
  for (const webhookId of webhookIds) if (parts.add(partOf(webhookId)).size === PARTS) break;
  return parts;
}

/** Processes that start together begin with different ones. */
function shuffled(parts: readonly number[]): number[] {
  return parts
    .map((part) => ({ part, order: Math.random() }))
    .toSorted((one, other) => one.order - other.order)
    .map(({ part }) => part);
}

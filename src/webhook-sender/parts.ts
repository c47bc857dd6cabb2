import { createHash } from 'node:crypto';
import { sleep } from '#src/async/sleep.ts';
import { newId } from '#src/ids.ts';
import { LEASE_MS, type Leases } from '#src/messaging/leases.ts';

/**
 * The webhooks are divided into so many parts by their ids, each of which one process serves: a
 * process renews this many leases at most, however many webhooks there are.
 */
const PARTS = 16;
/** A process takes no more free parts at once, so that those that start together share. */
const TAKEN_AT_ONCE = 4;
const RENEW_EVERY_MS = LEASE_MS / 3;
const TAKE_EVERY_MS = RENEW_EVERY_MS / 10;
/** A part whose lease could not be renewed for so long is left: another process may have it. */
const GIVE_UP_MS = LEASE_MS * 0.8;

export type Parts = {
  /** Whether this process serves the webhook. */
  isOurs(webhookId: string): boolean;
  /** Releases the parts; what works on them has ended. */
  release(): Promise<void>;
  /** Resolves once no part is taken any more, after the signal has aborted. */
  ended: Promise<void>;
};

/** Takes parts and keeps them until the signal aborts. @param onChange after each change */
export function keepParts(leases: Leases, onChange: () => void, signal: AbortSignal): Parts {
  const holder = newId('whs');
  /** With the time of the last renewal (monotonic, ms). */
  const held = new Map<number, number>();

  /** null: the store of leases does not answer, which is logged elsewhere. */
  const acquire = (part: number) => leases.acquire(nameOf(part), holder).catch(() => null);

  async function renew(part: number, renewedAt: number): Promise<void> {
    const at = performance.now();
    const isHeld = await acquire(part);
    if (isHeld === true) held.set(part, at);
    else if (isHeld === false || at - renewedAt > GIVE_UP_MS) held.delete(part);
  }
  async function take(): Promise<number> {
    let taken = 0;
    for (const part of shuffled().filter((one) => !held.has(one))) {
      const at = performance.now();
      if (taken >= TAKEN_AT_ONCE || signal.aborted) break;
      if ((await acquire(part)) !== true) continue;
      held.set(part, at);
      taken += 1;
    }
    return taken;
  }
  async function keep(): Promise<void> {
    while (!signal.aborted) {
      await Promise.all([...held].map(([part, at]) => renew(part, at)));
      const taken = await take();
      onChange();
      await sleep(taken > 0 ? TAKE_EVERY_MS : RENEW_EVERY_MS, signal);
    }
  }
  return {
    isOurs: (webhookId) => held.has(partOf(webhookId)),
    async release() {
      await Promise.allSettled(
        [...held.keys()].map((part) => leases.release(nameOf(part), holder)),
      );
    },
    ended: keep(),
  };
}

function nameOf(part: number): string {
  return `webhooks-${part}`;
}

function partOf(webhookId: string): number {
  return (createHash('sha256').update(webhookId).digest()[0] ?? 0) % PARTS;
}

/** Processes that start together begin with different ones. */
function shuffled(): number[] {
  return Array.from({ length: PARTS }, (_, part) => ({ part, order: Math.random() }))
    .toSorted((one, other) => one.order - other.order)
    .map(({ part }) => part);
}

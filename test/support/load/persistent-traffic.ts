import { eventually, type Answer, type RunningService } from '#test/support/service/service.ts';

/** Creates and stops that continue through any failure, and a record of the acknowledged ones. */
export type Traffic = {
  /** Idempotency keys that were sent, each until it was acknowledged. */
  keys: ReadonlySet<string>;
  /** Key → id of the session in its 201. */
  created: ReadonlyMap<string, string>;
  /** Ids whose stop was answered 200. */
  stopped: ReadonlySet<string>;
  /** The number of each outcome: `201`, `503 UNAVAILABLE`, `no answer` … */
  outcomes: ReadonlyMap<string, number>;
  /** Resolves once that many more creates are acknowledged than at the call. */
  goesOn(more: number, withinMs: number): Promise<void>;
  /** No new work; resolves when all keys have been acknowledged. */
  finish(): Promise<void>;
};

const CREATORS = 16;
/** A request without a final answer is repeated after this. */
const AGAIN_MS = 50;
/** One session in this many is stopped again. */
const STOPPED_ONE_IN = 3;

/**
 * Clients that create sessions one after the other, like careful clients: by key, until they are
 * stopped.
 */
export function startTraffic(service: RunningService): Traffic {
  const keys = new Set<string>();
  const created = new Map<string, string>();
  const stopped = new Set<string>();
  const outcomes = new Map<string, number>();
  const ending = new AbortController();

  /** Repeats until the service has given a final answer. */
  async function insist(ask: () => Promise<Answer>): Promise<Answer> {
    for (;;) {
      const answer = await ask().catch(() => null);
      const error = answer?.body.error as string | undefined;
      const outcome = answer === null ? 'no answer' : [answer.status, error].join(' ').trim();
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      if (answer !== null && answer.status < 500) return answer;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
  async function create(): Promise<void> {
    for (let number = 1; !ending.signal.aborted; number += 1) {
      const key = `key-${crypto.randomUUID()}`;
      keys.add(key);
      const headers = { 'idempotency-key': key };
      const body = { session_name: key, duration: '1h' };
      const answer = await insist(() => service.request('POST', '/api/sessions', body, headers));
      if (answer.status !== 201) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
      created.set(key, answer.body.id);
      if (number % STOPPED_ONE_IN !== 0) continue;
      const path = `/api/sessions/${answer.body.id}`;
      const stop = await insist(() => service.request('DELETE', path));
      if (stop.status !== 200) throw new Error(`${stop.status} ${JSON.stringify(stop.body)}`);
      stopped.add(answer.body.id);
    }
  }
  const running = Promise.all(Array.from({ length: CREATORS }, create));
  running.catch(() => undefined);
  return {
    keys,
    created,
    stopped,
    outcomes,
    async goesOn(more, withinMs) {
      const enough = created.size + more;
      const isEnough = eventually(
        () => created.size >= enough,
        `${more} more creates after ${JSON.stringify([...outcomes])}`,
        withinMs,
      );
      await Promise.race([isEnough, running]);
      await isEnough;
    },
    async finish() {
      ending.abort();
      await running;
    },
  };
}

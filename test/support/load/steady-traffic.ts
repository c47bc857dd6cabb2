import { setTimeout as pause } from 'node:timers/promises';
import type { Answer } from '#test/support/service/service.ts';
import type { Topology } from '#test/support/service/compose-topology.ts';

/** Sessions that are created at a steady pace through any failure, live briefly and are stopped. */
export type SteadyTraffic = {
  /** Name of a session, its idempotency key → its id in the 201. */
  created: ReadonlyMap<string, string>;
  /** All names that were sent. */
  names: ReadonlySet<string>;
  /** Ids whose stop was answered 200. */
  stopped: ReadonlySet<string>;
  /** Outcomes that were not answers of the API: must be empty. */
  wrong: readonly string[];
  /** Seconds from the first to the last refusal since that moment; 0: none was refused. */
  refusedSince(startedAt: number): number;
  /** Seconds of the slowest request that was answered since that moment. */
  slowestSince(startedAt: number): number;
  /** Starts no new sessions; resolves once each is acknowledged and stopped. */
  finish(): Promise<void>;
};

/** A refused request is repeated after this: the resolution of the measured time of refusals. */
const AGAIN_MS = 250;
const LIFE_MS = 4_000;

export function startSteadyTraffic(topology: Topology, everyMs: number): SteadyTraffic {
  const created = new Map<string, string>();
  const names = new Set<string>();
  const stopped = new Set<string>();
  const wrong: string[] = [];
  const refusals: number[] = [];
  const answered: { at: number; tookMs: number }[] = [];
  const lives: Promise<void>[] = [];

  /** Repeats a request like a careful client: with its idempotency key, until the final answer. */
  async function insist(ask: () => Promise<Answer>, done: number): Promise<Answer> {
    for (;;) {
      const askedAt = performance.now();
      const answer = await ask().catch(() => null);
      const now = performance.now();
      answered.push({ at: now, tookMs: now - askedAt });
      if (answer?.status === done) return answer;
      refusals.push(now);
      // No connection, no service behind the proxy, or 503: retry.
      const isExpected = answer === null || answer.status >= 502;
      if (!isExpected) wrong.push(`${answer.status} ${JSON.stringify(answer.body)}`);
      await pause(AGAIN_MS);
    }
  }
  async function live(): Promise<void> {
    const name = `s-${crypto.randomUUID()}`;
    names.add(name);
    const body = { session_name: name, duration: '1h' };
    const headers = { 'idempotency-key': name };
    const answer = await insist(
      () => topology.request('POST', '/api/sessions', body, headers),
      201,
    );
    const id = String(answer.body.id);
    created.set(name, id);
    await pause(LIFE_MS);
    await insist(() => topology.request('DELETE', `/api/sessions/${id}`), 200);
    stopped.add(id);
  }
  const beginning = setInterval(() => void lives.push(live()), everyMs);
  return {
    created,
    names,
    stopped,
    wrong,
    refusedSince(startedAt) {
      const since = refusals.filter((at) => at >= startedAt);
      return since.length === 0 ? 0 : (Math.max(...since) - Math.min(...since)) / 1000;
    },
    slowestSince(startedAt) {
      const since = answered.filter(({ at }) => at >= startedAt);
      return Math.max(0, ...since.map(({ tookMs }) => tookMs)) / 1000;
    },
    async finish() {
      clearInterval(beginning);
      await Promise.all(lives);
    },
  };
}

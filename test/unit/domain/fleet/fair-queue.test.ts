import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  nextOrganization,
  noShares,
  ORGANIZATIONS_MAX,
  serve,
  type Shares,
} from '#src/kernel/domain/fleet/fair-queue.ts';

type Waiting = { id: string; weight: number; requests: number };

/** Serves `count` requests by turn, and returns whom; `arrivals` join before that service. */
function serveAll(
  count: number,
  waiting: Waiting[],
  arrivals: { at: number; waiting: Waiting }[] = [],
): string[] {
  let shares: Shares = noShares;
  const left = waiting.map((one) => ({ ...one }));
  const served: string[] = [];
  for (let at = 0; at < count; at += 1) {
    for (const arrival of arrivals) if (arrival.at === at) left.push({ ...arrival.waiting });
    const ids = left.filter(({ requests }) => requests > 0).map(({ id }) => id);
    const next = nextOrganization(shares, ids);
    const one = left.find(({ id }) => id === next);
    if (next === null || one === undefined) break;
    one.requests -= 1;
    shares = serve(shares, next, one.weight, ids);
    served.push(next);
  }
  return served;
}

function countOf(served: readonly string[], id: string): number {
  return served.filter((one) => one === id).length;
}

describe('the turn of organizations whose requests wait', () => {
  it('goes to no organization if none waits', () => {
    expect(nextOrganization(noShares, [])).toBeNull();
  });

  it('goes round, however many requests each has', () => {
    const served = serveAll(6, [
      { id: 'a', weight: 1, requests: 40 },
      { id: 'b', weight: 1, requests: 2 },
      { id: 'c', weight: 1, requests: 1 },
    ]);
    expect(served).toEqual(['a', 'b', 'c', 'a', 'b', 'a']);
  });

  it('is at once that of an organization that comes when another has been served for long', () => {
    const a = { id: 'a', weight: 4, requests: 40 };
    const b = { id: 'b', weight: 1, requests: 1 };
    expect(serveAll(20, [a], [{ at: 10, waiting: b }])[10]).toBe('b');
  });

  it('comes as often as the weight says', () => {
    const served = serveAll(70, [
      { id: 'free', weight: 1, requests: 100 },
      { id: 'pro', weight: 2, requests: 100 },
      { id: 'max', weight: 4, requests: 100 },
    ]);
    expect([countOf(served, 'free'), countOf(served, 'pro'), countOf(served, 'max')]).toEqual([
      10, 20, 40,
    ]);
  });

  it('is kept for an organization that waited while another was served out of turn', () => {
    const waiting = ['a', 'b'];
    let shares = noShares;
    for (let at = 0; at < 3; at += 1) shares = serve(shares, 'a', 1, waiting);
    const served = Array.from({ length: 4 }, () => {
      const next = nextOrganization(shares, waiting) ?? '';
      shares = serve(shares, next, 1, waiting);
      return next;
    });
    expect(served).toEqual(['b', 'b', 'b', 'a']);
  });

  it('is not saved up by an organization that did not wait', () => {
    const a = { id: 'a', weight: 1, requests: 100 };
    const late = { at: 50, waiting: { id: 'b', weight: 1, requests: 100 } };
    const served = serveAll(70, [a], [late]).slice(50);
    expect(Math.abs(countOf(served, 'a') - countOf(served, 'b'))).toBeLessThanOrEqual(1);
  });

  const organizations = fc.uniqueArray(
    fc.record({
      id: fc.string({ minLength: 1 }),
      weight: fc.integer({ min: 1, max: 8 }),
      requests: fc.integer({ min: 1, max: 30 }),
    }),
    { selector: ({ id }) => id, minLength: 1, maxLength: 6 },
  );

  it('leaves none out: in any mix all requests are served, one at each turn', () => {
    fc.assert(
      fc.property(organizations, (waiting) => {
        const total = waiting.reduce((sum, { requests }) => sum + requests, 0);
        const served = serveAll(total + 1, waiting);
        expect(served).toHaveLength(total);
        for (const { id, requests } of waiting) expect(countOf(served, id)).toBe(requests);
      }),
    );
  });

  it('keeps two that both wait within one service of their shares', () => {
    fc.assert(
      fc.property(organizations, fc.integer({ min: 1, max: 60 }), (some, count) => {
        const waiting = some.map((one) => ({ ...one, requests: 1_000 }));
        const served = serveAll(count, waiting);
        const turns = waiting.map(({ id, weight }) => countOf(served, id) / weight);
        expect(Math.max(...turns) - Math.min(...turns)).toBeLessThanOrEqual(1 + 1e-9);
      }),
    );
  });

  it('remembers only the last one served while no other waits', () => {
    let shares = serve(noShares, 'a', 1, []);
    shares = serve(shares, 'b', 1, ['b']);
    expect([...shares.starts.keys()]).toEqual(['b']);
    expect(nextOrganization(shares, ['b', 'a'])).toBe('a');
  });

  it('keeps a bounded number of organizations', () => {
    let shares: Shares = noShares;
    const ids = Array.from({ length: 3 }, (_, at) => `waiting-${at}`);
    const full = new Map(
      Array.from({ length: ORGANIZATIONS_MAX }, (_, at) => [`o${at}`, 1 + at] as const),
    );
    shares = serve({ time: 0, starts: full }, 'one-more', 1, ids);
    expect(shares.starts.size).toBe(ORGANIZATIONS_MAX);
    expect(shares.starts.has(`o${ORGANIZATIONS_MAX - 1}`)).toBe(true);
  });
});

import type { Parts } from './parts.ts';
import type { Random } from './random.ts';
import type { World } from './world.ts';

/** Something that can be asked of the service. */
export type Route = {
  name: string;
  at: 'api' | 'gateway';
  /** Statuses that the document has; null: another document describes it. */
  documented: ReadonlySet<number> | null;
  /** A request that succeeds, as far as its random values go. */
  request: (random: Random, world: World) => Parts;
  /** `none`: it succeeds for no client. */
  success: 'ok' | 'socket' | 'none';
  /** `real`: it needs a real browser; `alone`: it is in the way of all others. */
  needs: 'any' | 'real' | 'alone';
  /** Takes what an answer gives. */
  keep?: (world: World, answer: { head: string; body: string }) => void;
};

/** The address of a client behind a trusted proxy: limits by address are not what is tried. */
export function commonHeaders(random: Random): [string, string][] {
  const address = [10, random.int(256), random.int(256), random.int(256)].join('.');
  return [
    ['host', 'localhost'],
    ['x-forwarded-for', address],
  ];
}

/**
 * The seeds of tests with random inputs. In `npm test` they are always the same, so that a change
 * is judged by what it changes. With TEST_SEEDS=new, as in the nightly run, each process draws its
 * own and tries five times as many inputs. A failing property prints its seed.
 */

const ALWAYS = 1;
const HIGHEST = 2 ** 31 - 1;

/** Whether this process draws its own seeds. */
export const hasNewSeeds = process.env['TEST_SEEDS'] === 'new';

/** The seed of everything random in this process. */
export const seed = hasNewSeeds ? 1 + Math.floor(Math.random() * HIGHEST) : ALWAYS;

/** Fewer inputs than these are never left out. */
const RUNS_MIN = 100;

/**
 * How many inputs a property tries that is worth `count` of them: a fifth in `npm test`, though not
 * below a hundred, and five times that with new seeds.
 */
export function runs(count: number): number {
  const few = Math.min(count, Math.max(RUNS_MIN, Math.ceil(count / 5)));
  return hasNewSeeds ? 5 * few : few;
}

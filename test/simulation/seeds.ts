import type { Bug } from './bugs.ts';
import { simulate, type Outcome } from './simulate.ts';

/** What many simulations have met, to see that they met what they are for. */
export type Tally = { seeds: number; events: number; counts: Record<string, number> };

/** Every so many seeds one is run again: the same seed must give the same events. */
const AGAIN_EVERY = 10;
/** Lines of the story in the message of a failure. */
const LINES_MAX = 60;

/**
 * Runs the seeds one after the other.
 * @throws Error at the first that breaks an invariant, or that differs when it is run again; the
 * message has the seed, the invariant, the end of the story and the command that runs it again
 */
export async function runSeeds(from: number, count: number, bug?: Bug): Promise<Tally> {
  const planted = bug === undefined ? {} : { bug };
  const tally: Tally = { seeds: 0, events: 0, counts: {} };
  for (let seed = from; seed < from + count; seed += 1) {
    const outcome = await simulate({ seed, ...planted });
    if (outcome.breaches.length > 0) throw new Error(await describe(outcome, planted));
    if (seed % AGAIN_EVERY === 0) await runAgain(outcome, planted);
    tally.seeds += 1;
    tally.events += outcome.events;
    for (const [name, times] of Object.entries(outcome.counts))
      tally.counts[name] = (tally.counts[name] ?? 0) + times;
  }
  return tally;
}

async function runAgain({ seed, digest }: Outcome, planted: { bug?: Bug }): Promise<void> {
  const again = await simulate({ seed, ...planted });
  if (again.digest !== digest)
    throw new Error(`seed ${seed} gave other events the second time: something is not seeded`);
}

/** Runs the seed again for its story. */
async function describe({ seed, breaches }: Outcome, planted: { bug?: Bug }): Promise<string> {
  const { story } = await simulate({ seed, tellStory: true, ...planted });
  const name = planted.bug === undefined ? '' : ` '${planted.bug.name}'`;
  return [
    `seed ${seed}: ${breaches.length} breaches`,
    ...breaches.map((breach) => `  ${breach}`),
    `the last ${LINES_MAX} lines of its story:`,
    ...story.slice(-LINES_MAX).map((line) => `  ${line}`),
    `to run it again with its whole story: npm run simulate -- ${seed}${name}`,
  ].join('\n');
}

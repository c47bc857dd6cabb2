import { bugs } from './bugs.ts';
import { simulate } from './simulate.ts';

/**
 * `npm run simulate -- 4711` prints the story of one seed, line by line. The name of a planted bug
 * may follow.
 */
const [, , number = '1', name] = process.argv;
const seed = Number(number);
const bug = bugs.find((one) => one.name === name);
if (!Number.isSafeInteger(seed) || (name !== undefined && bug === undefined)) {
  console.error('usage: npm run simulate -- <seed> [<planted bug>]; the bugs are');
  for (const one of bugs) console.error(`  '${one.name}'`);
  process.exit(2);
}
const planted = bug === undefined ? {} : { bug };
const outcome = await simulate({ seed, tellStory: true, ...planted });
const { breaches, story, digest, events, counts } = outcome;
for (const line of story) console.log(line);
console.log(JSON.stringify(counts, null, 2));
console.log(`seed ${seed}: ${events} events, ${digest}`);
for (const breach of breaches) console.log(`BREACH ${breach}`);
process.exitCode = breaches.length === 0 ? 0 : 1;

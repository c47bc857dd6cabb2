import { simulate } from './simulate.ts';

/** `npm run simulate -- 4711`: the story of one seed, line by line. */
const seed = Number(process.argv[2] ?? process.env['SEED'] ?? 1);
const { breaches, story, digest, events, counts } = await simulate({ seed, tellStory: true });
for (const line of story) console.log(line);
console.log(JSON.stringify(counts, null, 2));
console.log(`seed ${seed}: ${events} events, ${digest}`);
for (const breach of breaches) console.log(`BREACH ${breach}`);
process.exitCode = breaches.length === 0 ? 0 : 1;

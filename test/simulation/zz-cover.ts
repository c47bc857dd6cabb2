import { simulate } from './simulate.ts';
const all: Record<string, number> = {};
for (let seed = 1; seed <= 150; seed++) {
  const { counts, breaches } = await simulate({ seed });
  if (breaches.length) console.log(seed, breaches.slice(0, 2));
  for (const [k, v] of Object.entries(counts)) all[k] = (all[k] ?? 0) + v;
}
console.log(all);

import { bugs } from './bugs.ts';
import { simulate } from './simulate.ts';
for (const bug of bugs) {
  const t = performance.now();
  let found = 0,
    n = 0;
  const others = new Set<string>();
  for (let seed = 1; seed <= 40 && found === 0; seed++) {
    n = seed;
    const one = await simulate({ seed, bug });
    for (const b of one.breaches)
      if (b.startsWith(bug.breaks)) found++;
      else others.add(b.split(':')[0]!);
  }
  console.log(
    found > 0 ? 'FOUND' : 'not  ',
    bug.name,
    'at',
    n,
    Math.round(performance.now() - t),
    'ms',
    found ? '' : [...others],
  );
}

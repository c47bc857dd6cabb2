import { simulate } from './simulate.ts';
const [from, to] = process.argv.slice(2).map(Number) as [number, number];
const t = performance.now();
let bad = 0,
  slow = 0,
  slowest = 0;
for (let seed = from; seed <= to; seed++) {
  const b = performance.now();
  const one = await simulate({ seed });
  const ms = performance.now() - b;
  if (ms > slow) {
    slow = ms;
    slowest = seed;
  }
  if (one.breaches.length > 0) {
    bad++;
    console.log(
      seed,
      one.breaches.length,
      one.breaches.slice(0, 3).map((s) => s.slice(0, 250)),
    );
  }
  if (seed % 10 === 0) {
    const two = await simulate({ seed });
    if (two.digest !== one.digest) console.log('NOT DETERMINISTIC', seed);
  }
}
console.log(
  bad,
  'bad;',
  ((performance.now() - t) / (to - from + 1)).toFixed(1),
  'ms per seed (with repeats)',
  'slowest',
  slowest,
  slow.toFixed(0),
);

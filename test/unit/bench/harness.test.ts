import { expect, it, vi } from 'vitest';
import { interleave } from '#test/bench/harness/interleave.ts';
import { printVerdicts } from '#test/bench/harness/report.ts';
import { atLeast, atMost } from '#test/bench/samples.ts';

it('takes each step once a round, from another first step in each', async () => {
  const taken: string[] = [];
  const steps = ['a', 'b', 'c'].map((name) => async () => void taken.push(name));
  const between = vi.fn(async () => undefined);
  await interleave(steps, 3, between);
  expect(taken.join('')).toBe('abcacbcab');
  expect(between).toHaveBeenCalledTimes(9);
});

it('judges several runs by their median, and counts the runs that met the goal', () => {
  const lines: string[] = [];
  const runs = [0.02, 0.09, 0.03].map((ratio) => [
    atMost('create', ratio, 0.05, 'another 0.4'),
    atLeast('rate', 10 * ratio, 0.4),
  ]);
  expect(printVerdicts((line = '') => lines.push(line), runs)).toBe(false);
  expect(lines.find((line) => line.startsWith('create'))).toMatch(
    /0\.030 +233 % +0\.05 +2\/3 +0\.020 0\.090 0\.030 +\(another 0\.4\)$/,
  );
  expect(lines.find((line) => line.startsWith('rate'))).toMatch(/0\.300 .* 1\/3 /);
});

it('takes the mean of the middle two as the median of an even number of runs', () => {
  const lines: string[] = [];
  const runs = [0.02, 0.09, 0.04, 0.05].map((ratio) => [atMost('create', ratio, 0.045)]);
  expect(printVerdicts((line = '') => lines.push(line), runs)).toBe(true);
  expect(lines.at(-1)).toMatch(/^create +0\.045 .* 2\/4 /);
});

it('judges one run by its ratios', () => {
  const print = vi.fn<(line?: string) => void>();
  expect(printVerdicts(print, [[atMost('create', 0.05, 0.05), atLeast('rate', 0.4, 0.4)]])).toBe(
    true,
  );
  expect(print).toHaveBeenCalledWith(expect.stringMatching(/^create +0\.050 +0\.05 +met$/));
  expect(printVerdicts(print, [[atMost('create', 0.051, 0.05)]])).toBe(false);
});

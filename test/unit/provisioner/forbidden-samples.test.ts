import { expect, test } from 'vitest';
import { forbiddenSamples } from '#src/browsers/docker/isolation.ts';

test('the isolation check tries one address of each kind of private network', () => {
  const usual = ['10.213.213.213', '172.30.213.213', '192.168.213.213', '169.254.213.213'];
  expect(forbiddenSamples('172.18.0.0/16')).toEqual(usual);
});

test.each([
  ['192.168.208.0/20', '192.168.13.13'],
  ['172.30.0.0/16', '172.20.13.13'],
  ['10.192.0.0/11', '10.13.13.13'],
])('an address of the sessions’ own network %s is replaced by another one', (subnet, second) => {
  expect(forbiddenSamples(subnet)).toHaveLength(4);
  expect(forbiddenSamples(subnet)).toContain(second);
});

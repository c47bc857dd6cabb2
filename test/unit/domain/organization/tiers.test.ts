import { expect, test } from 'vitest';
import { tierNames } from '#events/organization.ts';
import { defaultTiers } from '#src/kernel/domain/organization/tiers.ts';

test.each([
  ['free', 100, 5],
  ['pro', 500, 50],
  ['max', 1000, 500],
] as const)('%s allows %i requests a minute and %i sessions at once', (tier, rate, sessions) => {
  expect(defaultTiers[tier].requestsPerMinute).toBe(rate);
  expect(defaultTiers[tier].concurrentSessions).toBe(sessions);
});

test('every tier starts with credits for at least one session of the default duration', () => {
  for (const tier of tierNames) expect(defaultTiers[tier].credits).toBeGreaterThanOrEqual(120);
});

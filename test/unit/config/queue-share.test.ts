import { expect, test } from 'vitest';
import { readConfig } from '#src/kernel/config/config.ts';

test.each([
  ['1', 1],
  ['4', 1],
  ['100', 33],
])('of QUEUE_MAX=%s two organizations leave a third one its share: %i each', (max, each) => {
  const { queue } = readConfig({ BROWSERS: 'simulated', QUEUE_MAX: max });
  expect(queue.perOrganizationMax).toBe(each);
});

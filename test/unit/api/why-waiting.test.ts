import { expect, test } from 'vitest';
import { whyWaiting, type ServerRoom } from '#src/roles/api/sessions/why-waiting.ts';

const live: ServerRoom = { status: 'live', poolMax: 4, limitedBy: null };
const none = { returned: null };

test.each([
  [[], 0, 0, 'No server is live.'],
  [[{ ...live, status: 'draining' }], 3, 0, 'No server is live: 1 server drains.'],
  [[live, live], 8, 0, 'All servers are full: 8 of 8 browsers run.'],
  [
    [{ ...live, limitedBy: 'memory' }],
    2,
    0,
    'The servers launch no further browser, limited by memory: 2 of 4 browsers run.',
  ],
  [[live], 3, 0, 'A browser is being launched: 3 of 4 browsers run.'],
  [[live], 3, 1, 'A browser is idle and about to be assigned: 3 of 4 browsers run.'],
] as const)('%j with %i browsers, %i idle: %s', (servers, browsers, idle, sentence) => {
  expect(whyWaiting(none, 0, { servers, browsers, idle })).toBe(sentence);
});

test('tells who gave it back and how many wait before it', () => {
  const returned = { serverId: 'srv_1', detail: 'the launch failed' };
  const facts = { servers: [live], browsers: 4, idle: 0 };
  expect(whyWaiting({ returned }, 1, facts)).toBe(
    'Server srv_1 gave it back: the launch failed. ' +
      'All servers are full: 4 of 4 browsers run. 1 session waits before it.',
  );
  expect(whyWaiting(none, 3, facts)).toContain('3 sessions wait before it.');
});

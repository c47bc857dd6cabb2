import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { defaultTiers } from '#src/kernel/domain/organization/tiers.ts';
import { COST_MAX, costs, unitsOf, type Asked } from '#src/roles/api/http/cost.ts';

type Case = [asked: Partial<Asked>, units: number];

function hold(name: keyof typeof costs, cases: Case[]): void {
  describe(name, () => {
    it.each(cases)('%j costs %i', (asked, units) => {
      const { query = {}, headers = {} } = asked;
      expect(unitsOf(costs[name], { query, headers }, 1_000)).toBe(units);
    });
  });
}

hold('createSession', [
  [{}, 1],
  [{ headers: { 'content-length': '256' } }, 1],
  [{ headers: { 'content-length': '257' } }, 2],
  [{ headers: { 'content-length': '60000' } }, 10],
  [{ headers: { 'content-length': '90', 'content-encoding': 'gzip' } }, 10],
  [{ headers: { 'content-length': '90', 'content-encoding': 'identity' } }, 1],
  [{ headers: { 'transfer-encoding': 'chunked' } }, 10],
]);
hold('updateSession', [
  [{}, 1],
  [{ headers: { 'content-length': '257' } }, 2],
  [{ headers: { 'content-length': '90', 'content-encoding': 'br' } }, 10],
  [{ headers: { 'transfer-encoding': 'chunked' } }, 10],
]);
hold('stopSessions', [[{}, 20]]);
hold('listSessions', [
  [{ query: { limit: '100', offset: '5000', status: 'active' } }, 1],
  [{ query: { label: 'a=b', status: 'active' } }, 1],
  [{ query: { label: ['a=b', 'c=d'] } }, 10],
  [{ query: { user_id: 'ada' } }, 1],
  [{ query: { user_id: 'ada', status: 'active' } }, 10],
  [{ query: { user_id: 'ada', label: 'a=b' } }, 10],
  [{ query: { label: ['a=b', 'c=d'], as_of: '2026-11-20T09:30:00Z' } }, 20],
]);
hold('getSession', [
  [{}, 1],
  [{ query: { as_of: '2026-11-20T09:30:00Z' } }, 10],
]);
hold('getStatus', [
  [{}, 1],
  [{ query: { as_of: '2026-11-20T09:30:00Z' } }, 20],
]);
hold('getUsage', [
  [{}, 3],
  [{ query: { limit: '1' } }, 2],
  [{ query: { limit: '100' } }, 11],
  [{ query: { limit: 'many' } }, 1],
  [{ query: { limit: '1000000' } }, 1],
]);
hold('streamEvents', [
  [{}, 1],
  [{ headers: { 'last-event-id': '' } }, 1],
  [{ headers: { 'last-event-id': '0' } }, 10],
  [{ headers: { 'last-event-id': '71204' }, query: { from: '1' } }, 2],
  [{ query: { from: '1' } }, 10],
  [{ query: { from: '71204' } }, 2],
  [{ query: { from: '2026-11-20T09:30:00Z' } }, 10],
]);
hold('streamEvents', [
  [{ query: { format: 'json' } }, 3],
  [{ query: { format: 'json', limit: '1', from: '1' } }, 2],
  [{ query: { limit: '500' }, headers: { accept: 'application/json' } }, 11],
  [{ query: { format: 'json', limit: '1', label: 'a=b' } }, 12],
  [{ query: { format: 'sse' }, headers: { accept: 'application/json' } }, 1],
  [{ headers: { accept: 'text/event-stream, application/json' } }, 1],
]);
hold('getSessionHistory', [
  [{}, 3],
  [{ query: { limit: '50' } }, 2],
  [{ query: { limit: '500', after: '70000' } }, 11],
  [{ query: { limit: 'many' } }, 1],
]);
hold('getSessionWhy', [[{}, 10]]);
hold('exportAudit', [[{}, 20]]);
hold('streamSessionEvents', [
  [{}, 10],
  [{ headers: { 'last-event-id': '' } }, 10],
  [{ headers: { 'last-event-id': '0' } }, 10],
  [{ headers: { 'last-event-id': '71204' } }, 2],
  [{ query: { from: '1' } }, 10],
  [{ query: { from: '71204' } }, 2],
  [{ query: { from: '2026-11-20T09:30:00Z' } }, 10],
]);
hold('changeKey', [[{}, 10]]);
hold('mcpMessage', [
  [{}, 10],
  [{ headers: { 'mcp-session-id': '' } }, 10],
  [{ headers: { 'mcp-session-id': 'mcp_1' } }, 1],
]);

test('every request fits into the window of every tier', () => {
  const most = Math.min(...Object.values(defaultTiers).map((tier) => tier.requestsPerMinute));
  expect(COST_MAX).toBeLessThanOrEqual(most / 5);
  const expensive = { units: () => 1_000, meaning: '' };
  const asked = { query: {}, headers: {} };
  expect(unitsOf(expensive, asked, 1_000)).toBe(COST_MAX);
  // A tier that TIERS makes smaller than a cost still admits the request, once a minute.
  expect(unitsOf(expensive, asked, 7)).toBe(7);
  expect(unitsOf(expensive, asked, 0)).toBe(1);
  expect(unitsOf(undefined, asked, 100)).toBe(1);
});

test('the README has each cost as the documentation has it', () => {
  const readme = readFileSync(
    new URL('../../../src/roles/api/http/README.md', import.meta.url),
    'utf8',
  );
  for (const [name, { meaning }] of Object.entries(costs)) {
    const rows = readme.split('\n').filter((line) => line.startsWith(`| \`${name}\` |`));
    expect(rows, name).toHaveLength(1);
    const told = meaning.replace(/^Costs /, '').replace(' of the rate limit', '');
    expect(rows[0]).toContain(`| ${told.replace(/\.$/, '')} |`);
  }
});

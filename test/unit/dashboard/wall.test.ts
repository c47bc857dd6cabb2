import { expect, it } from 'vitest';
import type { Row } from '#src/apps/dashboard/sessions/rows.ts';
import { createTurns } from '#src/apps/dashboard/wall/in-turn.ts';
import { intervalOf, KEPT_MS, nextSlots, viewOf } from '#src/apps/dashboard/wall/slots.ts';

const row = (id: string, status: Row['status'] = 'active'): Row => ({
  id,
  name: `name of ${id}`,
  status,
  createdAt: '2026-11-20T09:30:00.000Z',
  expiresAt: '2026-11-20T10:30:00.000Z',
  labels: {},
  userId: null,
  endedReason: null,
});
const rows = ['f', 'e', 'd', 'c', 'b', 'a'].map((id) => row(id));
const idsOf = (slots: readonly { id: string }[]) => slots.map(({ id }) => id).join('');

it('a session keeps its place until it has been over for a while, then the next takes it', () => {
  const view = viewOf(new URLSearchParams('size=4'));
  const first = nextSlots([], rows, view, 0);
  expect(idsOf(first)).toBe('fedc');
  const later = [row('g'), ...rows.map((one) => (one.id === 'e' ? row('e', 'stopped') : one))];
  const dimmed = nextSlots(first, later, view, 1000);
  expect(idsOf(dimmed)).toBe('fedc');
  expect(idsOf(nextSlots(dimmed, later, view, 999 + KEPT_MS))).toBe('fedc');
  expect(idsOf(nextSlots(dimmed, later, view, 1000 + KEPT_MS))).toBe('fgdc');
});

it('a pinned session takes the last place that is not pinned', () => {
  const first = nextSlots([], rows, viewOf(new URLSearchParams('size=4')), 0);
  const view = viewOf(new URLSearchParams('size=4&pin=a&pin=c'));
  expect(idsOf(nextSlots(first, rows, view, 0))).toBe('feac');
});

it('all tiles together take half of the organization’s requests at most', () => {
  expect(intervalOf(4, 500)).toBe(1000);
  expect(intervalOf(16, 480)).toBe(4000);
  expect(intervalOf(16, null)).toBe(1000);
});

it('work waits while so much of it is under way, also after a failure', async () => {
  const inTurn = createTurns(2);
  let most = 0;
  let running = 0;
  const work = async () => {
    running += 1;
    most = Math.max(most, running);
    await Promise.resolve();
    running -= 1;
    throw new Error('refused');
  };
  const all = await Promise.allSettled(Array.from({ length: 6 }, () => inTurn(work)));
  expect([all.length, most, running]).toEqual([6, 2, 0]);
});

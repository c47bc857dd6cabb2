import { expect, it } from 'vitest';
import { historyText } from '#src/roles/api/sessions/public-history.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { readPage } from '#src/kernel/history/page.ts';
import { accessed, MINUTE, requested, T0 } from '#test/support/examples.ts';
import { record, sessionRef } from '#test/support/history.ts';

/** A page of a history as text. */

const EVENTS = 5;

/** The text's events and `next`, where each state has a description of this length. */
async function told(length: number) {
  const eventStore = createMemoryEventStore();
  const uses = Array.from({ length: EVENTS }, (_, minute) => accessed(T0 + minute * MINUTE));
  await record<'session'>(eventStore, sessionRef(), requested(), ...uses);
  const range = { after: 1, upTo: EVENTS + 1, limit: EVENTS - 1 };
  const page = await readPage(eventStore, sessionRef(), range);
  const description = 'x'.repeat(length);
  const steps = page.steps.map(({ state, before, ...step }) => ({
    ...{ ...step, state: { ...state, description } },
    before: before && { ...before, description },
  }));
  const { events, next } = JSON.parse(historyText({ ...page, steps }));
  return [events.map(({ sequence }: { sequence: number }) => sequence), next];
}

it('has all events of the page', async () => {
  expect(await told(10)).toEqual([[2, 3, 4, 5], 5]);
});

it('is cut where its events are large, and leads on from there', async () => {
  expect(await told(2_000_000)).toEqual([[2, 3], 3]);
});

it('has one event however large that is', async () => {
  expect(await told(5_000_000)).toEqual([[2], 2]);
});

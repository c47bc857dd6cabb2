import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SessionEvent } from '#events/session.ts';
import { FIRST_MAX, NEWEST_MAX, readEnds } from '#src/kernel/history/ends-of-session.ts';
import { readPage } from '#src/kernel/history/page.ts';
import { readStory } from '#src/kernel/history/story.ts';
import { aSession } from '#test/support/events.fixture.ts';
import { accessed, activated, MINUTE, queued, requested, T0 } from '#test/support/examples.ts';
import { stopped, stopRequested } from '#test/support/examples.ts';
import { record } from '#test/support/history.ts';
import { eventLogs, historyOf, type OpenedLog } from '#test/support/stores/event-stores.ts';

/** A session that was used for long, among others. */

const EXTENSIONS = 350;

function extended(at: number): SessionEvent {
  const expiresAt = new Date(T0 + (at + 200) * MINUTE).toISOString();
  return { type: 'session.extended', data: { byMs: MINUTE, expiresAt, creditsReserved: 1 } };
}

describe.each(eventLogs)('a long session ($adapter)', ({ open }) => {
  const session = aSession();
  let opened: OpenedLog;
  let upTo: number;

  beforeAll(async () => {
    opened = await open();
    const { eventStore } = opened;
    await record<'session'>(eventStore, aSession(), requested(), queued);
    await record<'session'>(eventStore, session, requested(), queued, activated());
    const life = Array.from({ length: EXTENSIONS }, (_, at) => [
      extended(at),
      accessed(T0 + at * MINUTE),
    ]);
    await record<'session'>(eventStore, session, ...life.flat());
    await record<'session'>(eventStore, aSession(), requested(), queued);
    await record<'session'>(eventStore, session, stopRequested(), stopped(T0 + 10 * MINUTE, 10));
    upTo = (await eventStore.readLast(session))?.sequence ?? 0;
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());

  test('has the same steps in pages of any size as in one', async () => {
    const { eventStore } = opened;
    const whole = await readPage(eventStore, session, { after: 0, upTo, limit: 10_000 });
    expect(whole.next).toBeNull();
    const history = await historyOf(eventStore, session);
    expect(whole.steps.map(({ event }) => event)).toEqual(history);
    for (const limit of [1, 100, 500]) {
      let [after, pages] = [limit === 1 ? upTo - 5 : 0, 0];
      const seen = [];
      for (let next: number | null = after; next !== null; after = next ?? after, pages += 1) {
        const page = await readPage(eventStore, session, { after, upTo, limit });
        expect(page.steps.length).toBeLessThanOrEqual(limit);
        seen.push(...page.steps);
        next = page.next;
      }
      expect(seen).toEqual(whole.steps.slice(-seen.length));
      expect(pages).toBe(Math.ceil(seen.length / limit));
    }
  });

  test('is explained by its first and its newest events', async () => {
    const { eventStore } = opened;
    const { events, isWhole } = await readEnds(eventStore, session, upTo);
    const history = await historyOf(eventStore, session);
    expect(isWhole).toBe(false);
    expect(events).toEqual([...history.slice(0, FIRST_MAX), ...history.slice(-NEWEST_MAX)]);
    const [story, all] = [await readStory([events]), await readStory([history])];
    expect(story?.state).toEqual(all?.state);
    expect(story?.end.type).toBe('session.stopped');
  });

  test('with few events is explained by all of them', async () => {
    const { eventStore } = opened;
    const history = await historyOf(eventStore, session);
    for (const count of [1, FIRST_MAX - 1, FIRST_MAX, FIRST_MAX + 1, FIRST_MAX + NEWEST_MAX]) {
      const events = history.slice(0, count);
      const last = events.at(-1)?.sequence ?? 0;
      expect(await readEnds(eventStore, session, last)).toEqual({ events, isWhole: true });
    }
  });
});

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { chainedLines } from '#src/features/audit/records.ts';
import { scopeOf } from '#src/features/audit/scope.ts';
import type { RawRecords } from '#src/kernel/event-store/raw-records.ts';
import { refuseUnreadable } from '#src/kernel/event-store/unreadable.ts';
import { causesOf } from '#src/kernel/history/chain.ts';
import { readEnds } from '#src/kernel/history/ends-of-session.ts';
import { readPage } from '#src/kernel/history/page.ts';
import { readRelated } from '#src/kernel/history/related.ts';
import { readStory } from '#src/kernel/history/story.ts';
import { sealAndMerge, signer } from '#test/support/archive/archive.fixture.ts';
import {
  live,
  manyLives,
  openArchivedLog,
  type ArchivedLog,
} from '#test/support/archive/archived-log.ts';
import { sessionRef } from '#test/support/history.ts';

/** Histories, causes and audits are the same before and after their events are archived. */

let store: ArchivedLog;
let end: number;
beforeAll(async () => {
  store = await openArchivedLog();
  await live(store.log, manyLives());
  end = await store.log.lastSequence();
});
afterAll(() => store?.[Symbol.asyncDispose]());

const sessions = [
  sessionRef('ses_1', 'acme'),
  sessionRef('ses_2', 'acme'),
  sessionRef('ses_3', 'other'),
];

async function toldBy(eventStore: EventStore, records: RawRecords) {
  const told = [];
  for (const session of sessions) {
    const upTo = (await eventStore.readLast(session))?.sequence ?? 0;
    const pages = [];
    for (let after: number | null = 0; after !== null;) {
      const page = await readPage(eventStore, session, { after, upTo, limit: 2 });
      pages.push(page);
      after = page.next;
    }
    const { events } = await readEnds(eventStore, session, upTo);
    const story = await readStory([events]);
    if (story === null) throw new Error('there is no session');
    const options = { now: Date.now, onUnreadable: refuseUnreadable };
    const related = await readRelated(eventStore, story, options);
    told.push({ pages, story, related, chain: causesOf(story.end, related) });
  }
  const source = { eventStore, now: () => Date.now() + 60_000 };
  const span = { from: null, to: null, organization: 'acme' };
  const scope = {
    ...(await scopeOf(source, span)),
    to: 'later',
    up_to: end,
    form: 'public',
  } as const;
  const audit = await Array.fromAsync(chainedLines(records, scope));
  return { told, audit: audit.map(({ text }) => text).join('') };
}

test('in the log, across the border and in the archive', async () => {
  const { log, logRecords, open, truncation, files, eventStore, records } = store;
  const before = await toldBy(log, logRecords);
  expect(before.told.map(({ related }) => related.length)).not.toContain(0);
  expect(before.audit.split('\n').length).toBeGreaterThan(10);
  for (const border of [Math.floor(end / 2), end - 1]) {
    await (await open()).refresh();
    const range = { after: (await open()).endSequence(), upTo: border, organizationId: null };
    const { id } = await log.info();
    await sealAndMerge(logRecords.read(range), { files, log: id, signer, recordsMax: 7 });
    await truncation.truncate(border);
    expect(await toldBy(eventStore, records)).toEqual(before);
  }
});

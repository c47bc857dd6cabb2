import { expect, it } from 'vitest';
import { openArchive } from '#src/features/archive/archive.ts';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import type { CommandSession } from '#src/apps/cli/command.ts';
import { queryEvents } from '#src/apps/cli/commands/sql.ts';
import { UsageError } from '#src/apps/cli/errors.ts';
import { readArguments } from '#src/apps/cli/read-arguments.ts';
import { usageOf } from '#src/apps/cli/usage/all.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { seal } from '#test/support/archive/archive.fixture.ts';
import { HOUR, iso, T0 } from '#test/support/examples.ts';
import {
  decidedStore,
  eventsOf,
  rawRecordsOf,
  recordOf,
} from '#test/support/stores/decided-store.ts';

const eventStore = await decidedStore();
const events = await eventsOf(eventStore);
const records = events.map(recordOf);
const COUNT =
  "select count(*) as n, count(*) filter (type = 'session.requested') as asked from events";

/** Runs the command where the log has only the records above `purged`. */
async function bssSql(args: readonly string[], { files = createMemoryFiles(), purged = 0 } = {}) {
  const warnings: string[] = [];
  const session = {
    context: createCommandContext(eventStore, () => T0 + 1000 * HOUR),
    records: rawRecordsOf(records.slice(purged)),
    archiveFiles: () => Promise.resolve(files),
    openArchive: () => openArchive(files),
    isJson: true,
    warn: (text: string) => void warnings.push(text),
  } as unknown as CommandSession;
  const result = await queryEvents.read(readArguments(usageOf('sql'), args))(session);
  if (result === null) throw new Error('no result');
  return isRejection(result) ? { refusal: result.message, warnings } : { ...result, warnings };
}

it('prints a table and how many rows there are', async () => {
  const printed = await bssSql([
    `select organization_id as org, sum(credits_used) as credits from sessions
     group by all order by org`,
  ]);
  expect(printed).toMatchObject({
    text: expect.stringMatching(
      /^ORG +CREDITS\norg_acme +\d+\norg_bolt +\d+\n\n2 rows, of \d+ events$/,
    ),
    warnings: [],
  });
});

it('says that rows were left out, and gives them to programs by name', async () => {
  const printed = await bssSql(['select id, labels from sessions order by id', '--limit', '1']);
  expect(printed).toMatchObject({
    text: expect.stringContaining('the first 1 row; there are more: --limit N prints up to N'),
    json: { rows: [{ id: 'ses_0', labels: {} }], cut: true, events_loaded: records.length },
  });
});

it('escapes control characters of names, and draws a plan in lines', async () => {
  expect(await bssSql(["select chr(27) || '[2J' as name"])).toMatchObject({
    text: expect.stringContaining('\\u{1b}[2J'),
  });
  expect(await bssSql(['explain select type from events'])).toMatchObject({
    text: expect.stringMatching(/SEQ_SCAN[^]*\n[^]*Projections: type/),
  });
});

it('reads the archive, and the event store above it', async () => {
  const files = createMemoryFiles();
  const { id: log } = await eventStore.info();
  await seal(files, records.slice(0, 200), { log, recordsMax: 90 });
  const whole = await bssSql([COUNT]);
  expect(whole).toMatchObject({ json: { rows: [{ n: records.length, asked: 36 }] } });
  const purged = 150;
  expect(await bssSql([COUNT], { files, purged })).toEqual(whole);
  const gap = await bssSql([COUNT], { purged });
  expect(gap.warnings).toEqual(['150 events are neither in the archive nor in the event store']);
});

it('takes the events of a time span, which may begin in the archive', async () => {
  const { id: log } = await eventStore.info();
  const files = createMemoryFiles();
  await seal(files, records.slice(0, 200), { log, recordsMax: 90 });
  const [from, to] = [iso(T0 + 5 * HOUR), iso(T0 + 50 * HOUR)];
  const stored = await bssSql(['select count(*) as n from events', '--from', from, '--to', to], {
    files,
    purged: 200,
  });
  const after = events.findLastIndex(({ time }) => time < from) + 1;
  const upTo = events.findLastIndex(({ time }) => time < to) + 1;
  expect(stored).toMatchObject({ json: { rows: [{ n: upTo - after }] }, warnings: [] });
  expect(upTo - after).toBeGreaterThan(50);
});

it('refuses a wrong query and a wrong command line', async () => {
  expect(await bssSql(['select nope from events'])).toMatchObject({
    refusal: expect.stringContaining('(line 1, column 8, at "nope'),
  });
  const wrong = [
    [],
    [' '],
    [COUNT, '--limit', '0'],
    [COUNT, '--from', '2026-02-01', '--to', '2026-01-01'],
  ];
  for (const args of wrong) await expect(bssSql(args)).rejects.toThrow(UsageError);
});

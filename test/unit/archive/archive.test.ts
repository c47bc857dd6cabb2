import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { zstdDecompressSync } from 'node:zlib';
import { openArchive } from '#src/features/archive/archive.ts';
import type { ArchiveFiles } from '#src/features/archive/archive-files.ts';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import { chainLine, recordText } from '#src/kernel/event-store/chain.ts';
import { mergeLookups } from '#src/features/archive/lookups/lookup-files.ts';
import { genesisHash } from '#src/features/archive/manifest.ts';
import { aggregateOf } from '#src/features/archive/segment-index.ts';
import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';
import { verifyArchive } from '#src/features/archive/verify/verify.ts';
import {
  collect,
  copyOf,
  LOG,
  recordAt,
  recordsFrom,
  seal,
  signer,
} from '#test/support/archive/archive.fixture.ts';
import { runs } from '#test/support/seeds/seeds.ts';

const everything = { after: 0, upTo: Infinity, organizationId: null };

describe('sealed records', () => {
  it('are read back as they were, whatever their bodies hold', async () => {
    const bodies = fc.oneof(
      fc.json(),
      fc.json().map((text) => ` ${text}\t`),
      fc.json().map((text) => `${text}\r\n`),
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        '',
        '{"data":',
        '"\ud800"',
        '"}',
        '],"body":1',
        '[],"text":""',
        '{"a":"\u2028"}',
      ),
    );
    const text = fc.string({ unit: 'binary', maxLength: 20 });
    const record = fc.record({
      subject: fc.constantFrom(
        'evt.acme.session.a.requested',
        'evt.a.ledger.x',
        'odd',
        '],"body":',
      ),
      headers: fc.array(fc.tuple(text, text), { maxLength: 3 }),
      body: bodies,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 20 }), async (parts) => {
        const storedAt = '2026-11-20T09:30:00.1234567Z';
        const records = parts.map((part, at) => ({ sequence: at * 3 + 1, storedAt, ...part }));
        const files = createMemoryFiles();
        await seal(files, records, { recordsMax: 7 });
        const archive = await openArchive(files);
        expect(await collect(archive.records.read(everything))).toEqual(records);
      }),
      { numRuns: runs(200) },
    );
  });

  it('stand in the data as the chained lines of an audit', async () => {
    const files = createMemoryFiles();
    const odd = { ...recordAt(3), body: 'not JSON' };
    const records = [recordAt(1), recordAt(2), odd, recordAt(4)];
    await seal(files, records, { recordsMax: 2 });
    let [prev, text] = [genesisHash(LOG), ''];
    for (const record of records) {
      const { line, hash } = chainLine(prev, recordText(record));
      text += `${line}\n`;
      prev = hash;
    }
    const data = [await files.read('000001.ndjson.zst'), await files.read('000002.ndjson.zst')];
    expect(data.map((part) => zstdDecompressSync(part).toString()).join('')).toBe(text);
  });

  it('begin a new segment at a number of records or bytes', async () => {
    const byRecords = await seal(createMemoryFiles(), recordsFrom(1, 25), { recordsMax: 10 });
    expect(byRecords.map(({ records }) => records)).toEqual([10, 10, 5]);
    const byBytes = await seal(createMemoryFiles(), recordsFrom(1, 25), { bytesMax: 2_000 });
    expect(byBytes.length).toBeGreaterThan(3);
    expect(byBytes.map(({ sessions }) => sessions).reduce((a, b) => a + b)).toBe(0);
  });

  it('count the sessions that ended', async () => {
    const [manifest] = await seal(createMemoryFiles(), recordsFrom(1, 70));
    expect(manifest).toMatchObject({ sessions: 14, first_sequence: 1, last_sequence: 70 });
  });

  it('are refused out of order, and before the end of the archive', async () => {
    const files = createMemoryFiles();
    await seal(files, recordsFrom(1, 10));
    await expect(seal(files, recordsFrom(10, 20))).rejects.toThrow('sequence 10 after 10');
    await expect(seal(files, [recordAt(12), recordAt(11)])).rejects.toThrow('sequence 11 after 12');
    await expect(seal(files, recordsFrom(11, 20), { log: 'other' })).rejects.toThrow('other');
    expect((await openArchive(files)).endSequence()).toBe(10);
  });
});

/** 23 segments of several frames each. */
const all = recordsFrom(1, 4_600, 1_500).filter(({ sequence }) => sequence % 1_000 > 3);
const large = createMemoryFiles();
await seal(large, all, { recordsMax: 200 });

describe('an archive of many segments', () => {
  it('has a lookup file for each set bit of the number of segments', async () => {
    const names = (await large.list()).filter((name) => name.startsWith('lookup'));
    const lookups = ['lookup-000001-000016', 'lookup-000017-000020', 'lookup-000021-000022'];
    expect(names).toEqual(lookups.flatMap((name) => [name, `${name}.sums`]));
  });

  it('reads any range of sequences', async () => {
    const archive = await openArchive(large, { log: LOG });
    const ranges = [
      [0, 4_600],
      [0, 1],
      [199, 201],
      [998, 1_003],
      [4_599, 9_999],
      [30, 30],
    ] as const;
    for (const [after, upTo] of ranges) {
      const wanted = all.filter(({ sequence }) => sequence > after && sequence <= upTo);
      const found = await collect(archive.records.read({ after, upTo, organizationId: null }));
      expect(found).toEqual(wanted);
    }
  });

  it('reads one organization', async () => {
    const archive = await openArchive(large);
    const range = { after: 150, upTo: 4_000, organizationId: 'other' };
    const wanted = all.filter(
      ({ sequence, subject }) =>
        sequence > 150 && sequence <= 4_000 && subject.startsWith('evt.other.'),
    );
    expect(await collect(archive.records.read(range))).toEqual(wanted);
    expect(wanted.length).toBeGreaterThan(20);
  });

  it('reads each aggregate, and its last record up to any sequence', async () => {
    const archive = await openArchive(large, { cacheBytesMax: 1_000_000 });
    const histories = Map.groupBy(all, ({ subject }) => aggregateOf(subject));
    expect(histories.size).toBeGreaterThan(500);
    // Each fifth: some in every segment, with records in one of them or in many.
    for (const [prefix, history] of [...histories].filter((_, at) => at % 5 === 0)) {
      expect(await collect(archive.readAggregate(prefix))).toEqual(history);
      const middle = history[Math.floor(history.length / 2)]?.sequence ?? 0;
      const [after, upTo] = [middle - 1, middle + 30];
      expect(await collect(archive.readAggregate(prefix, { after, upTo }))).toEqual(
        history.filter(({ sequence }) => sequence > after && sequence <= upTo),
      );
      for (const upTo of [0, middle - 1, middle, 99_999])
        expect(await archive.lastUpTo(prefix, upTo)).toEqual(
          history.findLast(({ sequence }) => sequence <= upTo) ?? null,
        );
    }
  });

  it('finds nothing of an aggregate that is not there', async () => {
    const archive = await openArchive(large);
    for (const prefix of ['evt.acme', 'session.ses_0', 'fleet.server.x'])
      expect(await collect(archive.readAggregate(prefix))).toEqual([]);
    expect(await archive.lastUpTo('session.unknown', 4_000)).toBeNull();
  });

  it('finds the last sequence before a time', async () => {
    const archive = await openArchive(large);
    const before = (time: string | undefined) => archive.sequenceBefore(time ?? '');
    for (const at of [0, 1, 150, 199, 200, 201, 3_333, all.length - 1]) {
      const { storedAt } = all[at] as RawRecord;
      expect(await before(storedAt)).toBe(all[at - 1]?.sequence ?? 0);
      expect(await before(storedAt.replace('7Z', '8Z'))).toBe(
        at === all.length - 1 ? null : all[at]?.sequence,
      );
    }
  });

  it('reads few blocks and frames for an aggregate', async () => {
    let bytes = 0;
    const counted: ArchiveFiles = {
      ...large,
      async read(name, range) {
        const data = await large.read(name, range);
        bytes += name.endsWith('.json') ? 0 : data.length;
        return data;
      },
    };
    const archive = await openArchive(counted);
    bytes = 0;
    await collect(archive.readAggregate('session.ses_66_3'));
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThan(700_000);
  });

  it('has the same lookup files when they are made anew', async () => {
    const files = createMemoryFiles();
    for (const name of await large.list())
      if (!name.startsWith('lookup')) await files.write(name, await large.read(name));
    const manifests = (await openArchive(files)).trusted();
    await mergeLookups({ files, manifests, signer });
    for (const name of await large.list())
      expect((await files.read(name)).equals(await large.read(name))).toBe(true);
  });
});

describe('a reader', () => {
  it('is verified although its lookup files are merged meanwhile', async () => {
    const files = await copyOf(large);
    const lookups = (await files.list()).filter((name) => name.startsWith('lookup'));
    const size = files.size.bind(files);
    // Removed between the listing and the look, as by a run that has merged them.
    files.size = async (name) => {
      for (const lookup of lookups) await files.remove(lookup);
      return size(name);
    };
    const options = { signer: signer.fingerprint, log: LOG };
    expect((await verifyArchive(files, options)).findings).toEqual([]);
  });

  it('takes in new segments at a refresh, and finds lookup files that were merged meanwhile', async () => {
    const files = createMemoryFiles();
    await seal(files, all.slice(0, 600), { recordsMax: 200 });
    const archive = await openArchive(files);
    await seal(files, all.slice(600, 900), { recordsMax: 100 });
    const { subject } = all[0] as RawRecord;
    const wanted = all.slice(0, 900).filter((r) => aggregateOf(r.subject) === aggregateOf(subject));
    expect(await collect(archive.readAggregate(aggregateOf(subject)))).toEqual(wanted);
    await archive.refresh();
    expect(archive.segments().length).toBe(6);
    expect(archive.endSequence()).toBe(all[899]?.sequence);
    expect(archive.endTime()).toBe(all[899]?.storedAt);
  });

  it('names the segment and the line of what it cannot read', async () => {
    const files = createMemoryFiles();
    await seal(files, all.slice(0, 600), { recordsMax: 200 });
    const data = await files.read('000002.ndjson.zst');
    data[data.length - 1000] = (data[data.length - 1000] ?? 0) ^ 1;
    await files.write('000002.ndjson.zst', data);
    const archive = await openArchive(files);
    const read = collect(archive.records.read(everything));
    await expect(read).rejects.toMatchObject({ name: 'CorruptSegment', segment: 2 });
    await files.remove('000003.ndjson.zst');
    const other = await openArchive(files);
    const rest = collect(other.records.read({ ...everything, after: 410 }));
    await expect(rest).rejects.toThrow('segment 3, line 1: the data is missing');
    await files.remove('000002.json');
    await expect(openArchive(files)).rejects.toThrow('segment 2: the manifest is missing');
  });

  it('has nothing of an empty archive', async () => {
    const archive = await openArchive(createMemoryFiles());
    expect([archive.endSequence(), archive.endTime(), archive.segments()]).toEqual([0, null, []]);
    expect(await collect(archive.records.read(everything))).toEqual([]);
    expect(await archive.sequenceBefore('2026-11-20T09:30:00Z')).toBeNull();
    expect(await archive.lastUpTo('evt.acme.ledger', 5)).toBeNull();
  });
});

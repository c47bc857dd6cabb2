import { describe, expect, it, test } from 'vitest';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { ArchiveFiles } from '#src/features/archive/archive-files.ts';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import { FrameTable } from '#src/features/archive/segment-index.ts';
import { verifyArchive } from '#src/features/archive/verify/verify.ts';
import {
  copyOf,
  LOG,
  newSigner,
  recordsFrom,
  seal,
  signer,
} from '#test/support/archive/archive.fixture.ts';

/** Four segments of 300 lines; each has three frames of two blocks. */
const SEGMENTS = 4;
const whole = createMemoryFiles();
await seal(whole, recordsFrom(1, 1_200, 2_200), { recordsMax: 300 });
const fileNames = (await whole.list()).filter((name) => !name.startsWith('lookup'));

const options = { signer: signer.fingerprint, log: LOG, endSequence: 1_200 };

async function findings(files: ArchiveFiles) {
  return (await verifyArchive(files, options)).findings;
}

/** The findings on a copy in which one file was changed. */
async function afterChange(name: string, change: (bytes: Buffer) => Buffer) {
  const files = await copyOf(whole);
  await files.write(name, change(await files.read(name)));
  if (!name.endsWith('.zst')) return findings(files);
  const [first, last] = [segmentIn(name), segmentIn(name)];
  return (await verifyArchive(files, { ...options, first, last, endSequence: 0 })).findings;
}

/** The lines of the frame that a byte of a data file is in. */
async function lineRange(segment: number, place: number): Promise<[number, number]> {
  const table = new FrameTable(segment, await whole.read(`00000${segment}.index`));
  const at = table.lastFrame(({ offset }) => offset <= place);
  const last = at + 1 < table.frames ? table.frame(at + 1).firstLine - 1 : 300;
  return [table.frame(at).firstLine, last];
}

/** Numbers below a bound, spread over it, the same in each run. */
function places(bound: number, count: number): number[] {
  return Array.from(
    { length: count },
    (_, at) => Math.floor((at * bound) / count + at * 7) % bound,
  );
}

const segmentIn = (name: string) => Number(name.slice(0, 6));

it('an archive that was not changed has no findings', async () => {
  expect(await verifyArchive(whole, options)).toEqual({
    segments: SEGMENTS,
    records: 1_200,
    findings: [],
  });
  const part = await verifyArchive(whole, { ...options, first: 2, last: 4 });
  expect(part).toEqual({ segments: 3, records: 900, findings: [] });
});

describe('one altered byte is found, with its segment:', () => {
  const manifests = fileNames.filter((name) => name.endsWith('.json'));
  test.each(manifests)('anywhere in %s', async (name) => {
    const { length } = await whole.read(name);
    for (let place = segmentIn(name); place < length; place += 9) {
      const found = await afterChange(name, flip(place, 1 << (place % 8)));
      expect([place, found[0]?.segment]).toEqual([place, segmentIn(name)]);
    }
  });

  test.each(['000001.index', '000003.index'])('in %s, and that file is named', async (name) => {
    const { length } = await whole.read(name);
    for (const place of places(length, 30)) {
      const found = await afterChange(name, flip(place, 1 << (place % 8)));
      const problem = 'the index was altered';
      expect(found).toEqual([{ segment: segmentIn(name), line: null, problem }]);
    }
  });

  test.each(['000001.ndjson.zst', '000004.ndjson.zst'])(
    'in %s, with a line of its frame',
    async (name) => {
      const { length } = await whole.read(name);
      const edges = [0, 1, 4, 5, length - 1, length - 4, length - 5];
      for (const place of [...edges, ...places(length, 60)]) {
        const [first, last] = await lineRange(segmentIn(name), place);
        const found = await afterChange(name, flip(place, 1 << (place % 8)));
        expect([place, found.length, found[0]?.segment]).toEqual([place, 1, segmentIn(name)]);
        expect([place, found[0]?.line]).toEqual([place, expect.any(Number)]);
        expect(found[0]?.line).toBeGreaterThanOrEqual(first);
        expect(found[0]?.line).toBeLessThanOrEqual(last);
      }
    },
  );

  it('in a lookup file', async () => {
    const { length } = await whole.read('lookup-000001-000004');
    for (const place of places(length, 30)) {
      const [found] = await afterChange('lookup-000001-000004', flip(place, 4));
      expect(found?.problem).toContain(
        'lookup-000001-000004 has entries that the archivist did not write',
      );
    }
  });

  it('in data and index at once: the line by the data alone', async () => {
    const files = await copyOf(whole);
    for (const name of ['000002.index', '000002.ndjson.zst']) {
      const bytes = await files.read(name);
      await files.write(name, flip(Math.floor(bytes.length / 2), 16)(bytes));
    }
    const [first, last] = await lineRange(
      2,
      Math.floor((await whole.size('000002.ndjson.zst')) / 2),
    );
    const [index, data] = await findings(files);
    expect(index).toMatchObject({ segment: 2, line: null, problem: 'the index was altered' });
    expect(data?.segment).toBe(2);
    expect(data?.line).toBeGreaterThanOrEqual(first);
    expect(data?.line).toBeLessThanOrEqual(last);
  });
});

describe('the line of a change inside of a frame is exact:', () => {
  /** Changes the lines of a frame and compresses them again. */
  async function afterEdit(edit: (lines: string[]) => string[], frame = 1) {
    const table = new FrameTable(2, await whole.read('000002.index'));
    const { offset, length, firstLine } = table.frame(frame);
    const found = await afterChange('000002.ndjson.zst', (data) => {
      const lines = zstdDecompressSync(data.subarray(offset, offset + length))
        .toString()
        .split('\n');
      const edited = zstdCompressSync(Buffer.from(edit(lines).join('\n')));
      return Buffer.concat([data.subarray(0, offset), edited, data.subarray(offset + length)]);
    });
    return { firstLine, found };
  }

  it('an altered record', async () => {
    for (const at of [0, 5, 70]) {
      const edit = (lines: string[]) =>
        lines.with(at, (lines[at] ?? '').replace('"note":"', '"note":"z'));
      const { firstLine, found } = await afterEdit(edit);
      expect(found[0]).toMatchObject({ segment: 2, line: firstLine + at });
    }
  });

  it('two swapped lines, and one that is missing', async () => {
    const swap = (lines: string[]) => lines.with(3, lines[9] ?? '').with(9, lines[3] ?? '');
    const swapped = await afterEdit(swap);
    expect(swapped.found[0]).toMatchObject({ segment: 2, line: swapped.firstLine + 3 });
    const removed = await afterEdit((lines) => lines.toSpliced(11, 1));
    expect(removed.found[0]).toMatchObject({ segment: 2, line: removed.firstLine + 11 });
  });
});

describe('what is found, too:', () => {
  it('a cut or lengthened file', async () => {
    for (const name of fileNames)
      for (const part of [0, 0.3, 0.999]) {
        const cut = await afterChange(name, (b) => b.subarray(0, Math.floor(b.length * part)));
        expect([name, part, cut[0]?.segment]).toEqual([name, part, segmentIn(name)]);
        const more = await afterChange(name, (bytes) => Buffer.concat([bytes, Buffer.from('\n')]));
        expect([name, more[0]?.segment]).toEqual([name, segmentIn(name)]);
      }
  });

  it('two swapped bytes', async () => {
    for (const name of fileNames) {
      const bytes = await whole.read(name);
      for (const at of places(bytes.length - 1, 12)) {
        if (bytes[at] === bytes[at + 1]) continue;
        const found = await afterChange(name, (b) => {
          [b[at], b[at + 1]] = [b[at + 1] ?? 0, b[at] ?? 0];
          return b;
        });
        expect([name, at, found[0]?.segment]).toEqual([name, at, segmentIn(name)]);
      }
    }
  });

  it('files of two segments that were swapped', async () => {
    for (const kind of ['ndjson.zst', 'index', 'json']) {
      const files = await copyOf(whole);
      await files.write(`000002.${kind}`, await whole.read(`000003.${kind}`));
      await files.write(`000003.${kind}`, await whole.read(`000002.${kind}`));
      const segments = (await findings(files)).map(({ segment }) => segment);
      expect(segments).toEqual(expect.arrayContaining([2, 3]));
    }
  });

  it('a missing file, and a missing end', async () => {
    for (const name of fileNames) {
      const files = await copyOf(whole);
      await files.remove(name);
      expect([name, (await findings(files))[0]?.segment]).toEqual([name, segmentIn(name)]);
    }
  });

  it('a segment of another archive, and another signer', async () => {
    const other = createMemoryFiles();
    const records = recordsFrom(1, 1_200, 2_200);
    await seal(other, records, { recordsMax: 300, signer: await newSigner() });
    const problems = (await findings(other)).map(({ problem }) => problem);
    expect(problems.filter((problem) => problem.includes('is signed by')).length).toBe(SEGMENTS);
    const files = await copyOf(whole);
    const foreign = createMemoryFiles();
    await seal(foreign, records, { recordsMax: 300, log: 'another store' });
    for (const name of ['000003.json', '000003.index', '000003.ndjson.zst'])
      await files.write(name, await foreign.read(name));
    const found = await findings(files);
    expect(found[0]).toMatchObject({ segment: 3 });
    expect(found.map(({ problem }) => problem)).toContain('it is of the event store another store');
  });
});

function flip(place: number, bits: number) {
  return (bytes: Buffer) => {
    bytes[place] = (bytes[place] ?? 0) ^ bits;
    return bytes;
  };
}

import { describe, expect, it } from 'vitest';
import { aggregateOf } from '#src/features/archive/segment-index.ts';
import { openArchive } from '#src/features/archive/archive.ts';
import type { ArchiveFiles } from '#src/features/archive/archive-files.ts';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import { CorruptSegment } from '#src/features/archive/manifest.ts';
import type { ReadBack } from '#src/features/archive/read-back.ts';
import { SegmentTaken } from '#src/features/archive/segment-writer.ts';
import { verifyArchive } from '#src/features/archive/verify/verify.ts';
import { collect, LOG, recordsFrom, seal, signer } from '#test/support/archive/archive.fixture.ts';

const records = recordsFrom(1, 700, 700);
const RECORDS_MAX = 100;

class Killed extends Error {}

/** When in a change of the files the archivist dies. */
type Moment = 'before' | 'after' | 'while writing';

/** Files whose n-th change is the last thing that the archivist does. */
function dyingAt(files: ArchiveFiles, change: number, moment: Moment): ArchiveFiles {
  let changes = 0;
  async function step<T>(data: Buffer | AsyncIterable<Buffer> | null, work: () => Promise<T>) {
    changes += 1;
    if (changes > change) throw new Killed();
    if (changes < change) return work();
    if (moment === 'while writing' && data !== null && !Buffer.isBuffer(data))
      for await (const chunk of data) if (chunk.length > 0) throw new Killed();
    if (moment === 'after') await work();
    throw new Killed();
  }
  return {
    ...files,
    write: (name, data) => step(data, () => files.write(name, data)),
    writeNew: (name, data) => step(data, () => files.writeNew(name, data)),
    remove: (name) => step(null, () => files.remove(name)),
  };
}

/** Goes on after the archive's end, as the archivist does at its start. */
async function sealRest(files: ArchiveFiles): Promise<void> {
  const end = (await openArchive(files)).endSequence();
  const rest = records.filter(({ sequence }) => sequence > end);
  await seal(files, rest, { recordsMax: RECORDS_MAX });
}

async function expectWhole(files: ArchiveFiles): Promise<void> {
  const { findings } = await verifyArchive(files, { signer: signer.fingerprint, log: LOG });
  expect(findings).toEqual([]);
  const archive = await openArchive(files);
  const range = { after: 0, upTo: 700, organizationId: null };
  expect(await collect(archive.records.read(range))).toEqual(records);
}

describe('an archivist that is killed', () => {
  it.each(['before', 'after', 'while writing'] as const)(
    '%s any change of the files loses nothing, and repeats nothing',
    async (moment) => {
      let change = 1;
      for (let isKilled = true; isKilled; change += 1) {
        const files = createMemoryFiles();
        isKilled = await dies(sealRest(dyingAt(files, change, moment)));
        await expectReadable(files);
        await sealRest(files);
        await expectWhole(files);
        const { length } = (await openArchive(files)).segments();
        expect(length).toBe(7);
      }
      expect(change).toBeGreaterThan(25);
    },
  );

  it('again and again comes to the end', async () => {
    const files = createMemoryFiles();
    let kills = 0;
    while (await dies(sealRest(dyingAt(files, 5 + (kills % 3), 'after')))) kills += 1;
    expect(kills).toBeGreaterThan(3);
    await expectWhole(files);
  });
});

/** After a kill, before anything goes on: what is sealed can be read. */
async function expectReadable(files: ArchiveFiles): Promise<void> {
  const archive = await openArchive(files);
  const end = archive.endSequence();
  const { subject } = records[0] as (typeof records)[0];
  const aggregate = aggregateOf(subject);
  expect(await collect(archive.readAggregate(aggregate))).toEqual(
    records.filter((r) => r.sequence <= end && aggregateOf(r.subject) === aggregate),
  );
}

async function dies(work: Promise<void>): Promise<boolean> {
  try {
    await work;
    return false;
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
    return true;
  }
}

describe('two archivists', () => {
  it('cannot both seal a segment', async () => {
    const files = createMemoryFiles();
    const late: ArchiveFiles = {
      ...files,
      async writeNew(name, data) {
        await files.writeNew(name, Buffer.from('the other was faster'));
        return files.writeNew(name, data);
      },
    };
    await expect(seal(late, records)).rejects.toThrow(SegmentTaken);
  });
});

describe('what was written is read back before it is sealed', () => {
  it.each(['000001.ndjson.zst', '000001.index'])('a damaged %s gets no manifest', async (name) => {
    for (const damage of [
      (bytes: Buffer) => bytes.subarray(0, -1),
      (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('x')]),
      (bytes: Buffer) => bytes.fill(0x2a, bytes.length >> 1, (bytes.length >> 1) + 1),
      (bytes: Buffer) => bytes.subarray(0, 0),
    ]) {
      const files = createMemoryFiles();
      const faulty: ArchiveFiles = {
        ...files,
        async write(written, data) {
          await files.write(written, data);
          if (written === name) await files.write(name, damage(await files.read(name)));
        },
      };
      await expect(seal(faulty, records)).rejects.toThrow('segment 1');
      expect(await files.list()).not.toContain('000001.json');
    }
  });

  it('a damaged segment keeps the next one unsealed, though that was written beside', async () => {
    const files = createMemoryFiles();
    const damaged: ReadBack = async ({ manifest }) => {
      if (manifest.number === 2) throw new CorruptSegment(2, 7, 'it was altered');
    };
    const options = { recordsMax: RECORDS_MAX };
    const sealing = seal(files, records, { ...options, readBack: damaged });
    await expect(sealing).rejects.toThrow('segment 2, line 7');
    const manifests = async () => (await files.list()).filter((name) => name.endsWith('.json'));
    expect(await manifests()).toEqual(['000001.json']);
    const archive = await openArchive(files);
    await seal(files, records.slice(archive.endSequence()), options);
    expect((await manifests()).length).toBe(Math.ceil(records.length / RECORDS_MAX));
    const whole = createMemoryFiles();
    await seal(whole, records, options);
    for (const name of await whole.list())
      if (!name.endsWith('.json')) expect(await files.read(name)).toEqual(await whole.read(name));
  });
});

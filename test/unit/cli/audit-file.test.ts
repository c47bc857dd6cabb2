import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  knownFingerprint,
  openAuditKey,
  type AuditKey,
  type KeyPlace,
} from '#src/start/audit-key.ts';
import { readLines } from '#src/apps/cli/commands/audit/verify.ts';
import { verifyLines } from '#src/apps/cli/commands/audit/verify-lines.ts';
import { auditOf, fileOf, found, recordOf, verdictOnFile } from '#test/support/audit-file.ts';
import { runs } from '#test/support/seeds/seeds.ts';

let dataDir: string;
let place: KeyPlace;
let key: AuditKey;
const placeAt = (name: string) => ({ dataDir: join(dataDir, name), auditKeyFile: null });
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'bss-audit-'));
  place = { dataDir, auditKeyFile: null };
  key = await openAuditKey(place);
});
afterAll(() => rm(dataDir, { recursive: true }));

const texts = ['plain', 'ünïcödé 🦊', '', '"}', '\\n', '\u0000\ud800', 'x'.repeat(900), 'end'];

async function exported(): Promise<string[]> {
  return auditOf(
    key,
    texts.map((text, at) => recordOf(at + 1, text)),
  );
}

describe('an exported file', () => {
  it('is whole, and has the fingerprint of its signer', async () => {
    const { fingerprint } = key;
    const verdict = await verdictOnFile(fileOf(await exported()));
    expect(verdict).toMatchObject({ isWhole: true, fingerprint, head: { records: texts.length } });
  });

  it('is whole without any record', async () => {
    expect(await found(fileOf(await auditOf(key, [])))).toBe('whole');
  });

  it('is whole when read from disk, whatever the chunk boundaries', async () => {
    const path = join(dataDir, 'long.ndjson');
    const many = Array.from({ length: 300 }, (_, at) => recordOf(at + 1, 'x'.repeat(at * 7)));
    await writeFile(path, fileOf(await auditOf(key, many)));
    expect((await stat(path)).size).toBeGreaterThan(4 * 64 * 1024);
    expect(await verifyLines(readLines(path))).toMatchObject({ isWhole: true });
  });
});

describe('the verification names the line of:', () => {
  it('a record that was altered', async () => {
    const lines = await exported();
    const altered = lines.map((line) => line.replace('plain', 'plein'));
    expect(await verdictOnFile(fileOf(altered))).toEqual({
      isWhole: false,
      line: 2,
      reason: 'it was altered',
    });
  });

  it('a line that was removed, wherever', async () => {
    const lines = await exported();
    for (let at = 0; at < lines.length; at += 1)
      expect(await found(fileOf(lines.toSpliced(at, 1)))).toBe(at + 1);
  });

  it('two lines that were swapped, whichever', async () => {
    const lines = await exported();
    for (let one = 0; one < lines.length; one += 1)
      for (let other = one + 1; other < lines.length; other += 1) {
        const [a, b] = [lines[one] ?? '', lines[other] ?? ''];
        expect(await found(fileOf(lines.with(one, b).with(other, a)))).toBe(one + 1);
      }
  });

  it('a line that stands twice, and one that was added at the end', async () => {
    const lines = await exported();
    for (let at = 1; at < lines.length; at += 1)
      expect(await found(fileOf(lines.toSpliced(at, 0, lines[at] ?? '')))).toBe(at + 2);
    expect(await found(fileOf([...lines, 'more']))).toBe(lines.length + 1);
  });

  it('a tail that was cut off at any byte', async () => {
    const lines = await exported();
    const whole = fileOf(lines);
    for (let length = 0; length < whole.length; length += 13) {
      const begun = whole.subarray(0, length).filter((byte) => byte === 0x0a).length + 1;
      expect(await found(whole.subarray(0, length)), `${length} bytes`).toBe(begun);
    }
    expect(await found(whole.subarray(0, -1))).toBe(lines.length);
  });

  it('any byte that is replaced', async () => {
    const whole = fileOf(await exported());
    const anywhere = fc.integer({ min: 0, max: whole.length - 1 });
    await fc.assert(
      fc.asyncProperty(anywhere, fc.integer({ min: 1, max: 255 }), async (at, by) => {
        const altered = Buffer.from(whole);
        altered.writeUInt8((whole.readUInt8(at) + by) % 256, at);
        const line = whole.subarray(0, at).filter((byte) => byte === 0x0a).length + 1;
        expect(await found(altered)).toBe(line);
      }),
      { numRuns: runs(400) },
    );
  });

  it('every byte of the head and of the line below it', async () => {
    const lines = await exported();
    const whole = fileOf(lines.slice(0, 2));
    const headEnd = whole.indexOf(0x0a);
    for (let at = 0; at < whole.length; at += 1) {
      const altered = Buffer.from(fileOf(lines));
      altered.writeUInt8(altered.readUInt8(at) ^ 1, at);
      expect(await found(altered), `byte ${at}`).toBe(at <= headEnd ? 1 : 2);
    }
  });

  it('any byte that is removed or added', async () => {
    const whole = fileOf(await exported());
    const anywhere = fc.integer({ min: 0, max: whole.length - 1 });
    await fc.assert(
      fc.asyncProperty(anywhere, fc.uint8Array({ maxLength: 2 }), async (at, put) => {
        const altered = Buffer.concat([whole.subarray(0, at), put, whole.subarray(at + 1)]);
        if (altered.equals(whole)) return;
        const line = whole.subarray(0, at).filter((byte) => byte === 0x0a).length + 1;
        // Of a run of equal bytes it cannot be said which is gone.
        expect([line, line + 1]).toContain(await found(altered));
      }),
      { numRuns: runs(200) },
    );
  });
});

describe('a forger', () => {
  it('who chains the lines anew does not have the signature', async () => {
    const [head = ''] = await exported();
    const [, ...forged] = await auditOf(
      key,
      texts.map((text, at) => recordOf(at + 1, text.replace('plain', 'forged'))),
    );
    const verdict = await verdictOnFile(fileOf([head, ...forged]));
    expect(verdict).toMatchObject({ isWhole: false, line: null });
  });

  it('who signs with another key is known by its fingerprint', async () => {
    const foreign = await openAuditKey(placeAt('forger'));
    const verdict = await verdictOnFile(fileOf(await auditOf(foreign, [recordOf(1, 'forged')])));
    expect(verdict).toMatchObject({ isWhole: true, fingerprint: foreign.fingerprint });
    expect(foreign.fingerprint).not.toBe(key.fingerprint);
  });
});

describe('the key', () => {
  it('is created once and kept', async () => {
    const [again, known] = await Promise.all([openAuditKey(place), knownFingerprint(place)]);
    expect([again.fingerprint, known]).toEqual([key.fingerprint, key.fingerprint]);
    expect(again.publicKey).not.toHaveProperty('d');
    expect((await stat(join(dataDir, 'audit-key'))).mode & 0o777).toBe(0o600);
  });

  it('is the one of a named file, which is never made', async () => {
    const named = { ...placeAt('other'), auditKeyFile: join(dataDir, 'audit-key') };
    const [opened, known] = await Promise.all([openAuditKey(named), knownFingerprint(named)]);
    expect([opened.fingerprint, known]).toEqual([key.fingerprint, key.fingerprint]);
    const missing = { ...placeAt('other'), auditKeyFile: join(dataDir, 'none') };
    await expect(openAuditKey(missing)).rejects.toThrow('ENOENT');
    expect(await knownFingerprint(missing)).toBeNull();
  });

  it('is not created by reading its fingerprint', async () => {
    expect(await knownFingerprint(placeAt('no-such-folder'))).toBeNull();
  });
});

import { describe, expect, it, test } from 'vitest';
import { filesAfter, inOrder, type SessionFiles } from '#src/kernel/domain/session/files.ts';
import {
  givenFileName,
  safeFileName,
  unusedFileName,
} from '#src/kernel/domain/session/file-name.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { decide } from '#src/kernel/domain/session/decide.ts';
import { session } from '#test/support/given-when-then.ts';
import {
  activated,
  filed,
  iso,
  MINUTE,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const [added, removed, refused] = filed;

const file = {
  fileId: 'fil_1',
  name: 'report.pdf',
  bytes: 48_213,
  sha256: 'ab'.repeat(32),
  origin: 'download',
} as const;
const add = { type: 'RecordFileAdded', ...file, now: T0 + 6 * MINUTE } as const;
const remove = { type: 'RecordFileRemoved', name: file.name, now: T0 + 7 * MINUTE } as const;

describe('the files of a session', () => {
  it('are in its events, and are no part of its state', () => {
    given(requested(), activated()).when(add).then(added);
    given(requested(), activated(), added).when(remove).then(removed);
    given(requested(), activated())
      .when({
        type: 'RecordFileRefused',
        name: 'film.mkv',
        origin: 'download',
        reason: 'too_large',
        bytes: 4 * 1024 ** 3,
        now: T0 + 8 * MINUTE,
      })
      .then(refused);
  });

  it('are still added while the session stops, and not once it has ended', () => {
    const stopping = given(requested(), activated(), stopRequested());
    stopping.when(add).then(added);
    const over = given(requested(), activated(), stopRequested(), stopped(T0 + MINUTE, 1));
    over.when(add).thenRejected('SESSION_ENDED');
    over.when(remove).thenRejected('SESSION_ENDED');
  });

  it('are listed as they came', () => {
    const first = { ...added, data: { ...added.data, name: 'b', at: iso(T0) } };
    const second = { ...added, data: { ...added.data, name: 'a', at: iso(T0 + MINUTE) } };
    const none: SessionFiles = new Map();
    const files = [second, first].reduce(filesAfter, none);
    expect(inOrder(files).map(({ name }) => name)).toEqual(['b', 'a']);
    const gone = { ...removed, data: { ...removed.data, name: 'b' } };
    expect(inOrder(filesAfter(files, gone)).map(({ name }) => name)).toEqual(['a']);
  });

  it('of a session that is not there cannot be', () => {
    expect(isRejection(decide(add, null))).toBe(true);
  });
});

test.each([
  ['report.pdf', 'report.pdf'],
  ['../../x', 'x'],
  ['..\\..\\boot.ini', 'boot.ini'],
  ['/etc/passwd', 'passwd'],
  ['..', 'download'],
  ['', 'download'],
  ['___', 'download'],
  ['a\0b\n\u001b[31m.txt', 'ab[31m.txt'],
  ['.bashrc', '_bashrc'],
  ['..hidden', '__hidden'],
  ['CON', '_CON'],
  ['com1.txt', '_com1.txt'],
  ['console.txt', 'console.txt'],
  ['what?.txt', 'what_.txt'],
  ['ends. . ', 'ends'],
  ['cod\u202Etxt.exe', 'codtxt.exe'],
  ['Zu\u0308rich.pdf', 'Z\u00fcrich.pdf'],
  ['雪 ☃.tar.gz', '雪 ☃.tar.gz'],
  ['lone \ud800 half', 'lone \ufffd half'],
])('the safe name of %j is %j', (suggested, safe) => {
  expect(safeFileName(suggested)).toBe(safe);
  expect(safeFileName(safe)).toBe(safe);
  expect(givenFileName(safe)).toBe(safe);
});

test.each(['', '.', '../x', 'a/b', 'a\\b', 'a\0', '.ssh', 'nul', 'x'.repeat(256), '\ud800'])(
  'a caller may not name a file %j',
  (name) => expect(givenFileName(name)).toBeNull(),
);

test('a caller may name a file in any normal form', () => {
  expect(givenFileName('Zu\u0308rich.pdf')).toBe('Z\u00fcrich.pdf');
});

test('a name has at most 255 bytes, keeps its extension and breaks no character', () => {
  const long = safeFileName(`${'ü'.repeat(200)}.tar.gz`);
  expect(Buffer.byteLength(long)).toBeLessThanOrEqual(255);
  expect(long).toMatch(/^ü+\.tar\.gz$/);
  expect(safeFileName('x'.repeat(255))).toBe('x'.repeat(255));
  const family = safeFileName('👨‍👩‍👧‍👦'.repeat(20));
  expect(Buffer.byteLength(family) % Buffer.byteLength('👨‍👩‍👧‍👦')).toBe(0);
});

test('names that are taken are numbered', () => {
  const taken = new Set<string>();
  const names = ['a.txt', 'a.txt', 'a.txt', 'b.tar.gz', 'b.tar.gz', 'c', 'c'].map((name) => {
    const unused = unusedFileName(name, (one) => taken.has(one));
    taken.add(unused);
    return unused;
  });
  expect(names).toEqual([
    ...['a.txt', 'a (1).txt', 'a (2).txt'],
    ...['b.tar.gz', 'b (1).tar.gz', 'c', 'c (1)'],
  ]);
  const long = 'x'.repeat(255);
  const next = unusedFileName(long, (one) => one === long);
  expect(next).toMatch(/^x+ \(1\)$/);
  expect(Buffer.byteLength(next)).toBe(255);
});

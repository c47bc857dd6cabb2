import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FrameBuilder } from '#src/features/archive/frames.ts';
import { rawRecordOf, type RecordBytes } from '#src/kernel/event-store/record-bytes.ts';
import { runs } from '#test/support/seeds/seeds.ts';

const place = {
  sequence: 7,
  storedAt: '2026-11-23T12:38:20.708849705Z',
  subject: 'evt.acme.session.ses_1.requested',
};

function blockOf(lines: readonly string[]): Buffer {
  return Buffer.from(['NATS/1.0', ...lines, '', ''].join('\r\n'));
}

function linesOf(...records: Parameters<FrameBuilder['append']>[0][]): string {
  const frame = new FrameBuilder('0'.repeat(64));
  for (const record of records) frame.append(record);
  return frame.take().toString('latin1');
}

/** With another record behind it, which a wrong end would spoil. */
function expectSameLines(headers: Uint8Array, body: Uint8Array): void {
  const record: RecordBytes = { ...place, headers, body };
  const next: RecordBytes = { ...record, sequence: 8, body: Buffer.from('{}') };
  const [text, nextText] = [rawRecordOf(record), rawRecordOf(next)];
  expect(linesOf(record, next)).toBe(linesOf(text, nextText));
}

describe('the line of a record that is still bytes is that of its texts', () => {
  it.each([
    ['plain', ['ce-id: evt_1', 'ce-type:session.requested', 'content-type:   application/json  ']],
    ['none', []],
    ['of the server between', ['Nats-Msg-Id: 7', 'a: 1', 'Nats-Expected-Last-Sequence: 6']],
    ['empty values', ['a:', 'b: ', ': c']],
    ['with colons', ['ce-time: 2026-11-23T12:38:20Z']],
    ['that JSON escapes', ['a: "quoted"', String.raw`b: back\slash`, 'c: tab\there']],
    ['of several bytes a character', ['a: Zürich', 'ü: x', 'b:\u00a0x\u00a0']],
    ['without a colon', ['a: 1', 'no colon', 'b: 2']],
  ])('headers: %s', (_, lines) => {
    expectSameLines(blockOf(lines), Buffer.from('{"data":{}}'));
  });

  it.each([
    ['an object', '{"data":{"note":"Zürich \\" \u2028"},"state":null}'],
    ['two lines', '{"a":\n1}'],
    ['no JSON', 'hello "world"'],
    ['nothing', ''],
  ])('a body of %s', (_, body) => {
    expectSameLines(blockOf(['a: 1']), Buffer.from(body));
  });

  it('a body that is not UTF-8', () => {
    expectSameLines(blockOf(['a: 1']), Buffer.from([0x22, 0xc3, 0x28, 0x22]));
  });

  it('no header block at all, and one that ends early', () => {
    expectSameLines(Buffer.alloc(0), Buffer.from('{}'));
    expectSameLines(Buffer.from('NATS/1.0\r\na: 1'), Buffer.from('{}'));
    expectSameLines(Buffer.from('NATS/1.0\r\nNats-Msg-Id: 1'), Buffer.from('{}'));
    expectSameLines(Buffer.from('NATS/1.0\r\na: 1\r'), Buffer.from('{}'));
  });

  it('any bytes', () => {
    const pieces = ['a', 'Nats-', ':', ' ', '\r\n', '\r', '\n', '"', '\\', 'ü', '\t', 'x: y\r\n'];
    const blocks = fc.array(fc.constantFrom(...pieces), { maxLength: 12 });
    fc.assert(
      fc.property(blocks, fc.json(), (parts, body) => {
        const block = Buffer.from(`NATS/1.0\r\n${parts.join('')}\r\n\r\n`);
        expectSameLines(block, Buffer.from(body));
      }),
      { numRuns: runs(5_000) },
    );
  });
});

import { beginOf, readLine, sha256, type AuditHead } from './chain.ts';
import { signerOf } from './key.ts';

/** What is found of a file; `line` counts from 1, null where no single line can be named. */
export type Verdict =
  | { isWhole: true; head: AuditHead; fingerprint: string }
  | { isWhole: false; line: number | null; reason: string };

/** Shown a record that is proved to be as it was exported; what it says of it ends the reading. */
export type Inspect = (line: number, record: Buffer, head: AuditHead) => Promise<string | null>;

const HEAD = /^\{"head":(\{.*\}),"signature":"([\w-]+\.\.[\w-]+)"\}$/s;

/**
 * Proves that lines are those of an audit, whole and untouched: nothing but the lines themselves is
 * asked. The first line that is not as it was written is named, or the one that is missing.
 * @param lines without their line feeds; `isEnded` is false for what no line feed ends
 */
export async function verdictOn(
  lines: AsyncIterable<{ text: Buffer; isEnded: boolean }>,
  inspect: Inspect = () => Promise.resolve(null),
): Promise<Verdict> {
  const iterator = lines[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done === true) return broken(1, 'the file is empty');
  const opened = await openHead(first.value);
  if (typeof opened === 'string') return broken(1, opened);
  const { head, fingerprint } = opened;
  let prev = beginOf(head);
  let line = 1;
  for await (const { text, isEnded } of { [Symbol.asyncIterator]: () => iterator }) {
    line += 1;
    if (line > head.records + 1) return broken(line, 'the audit ended before this line');
    const parts = readLine(text);
    if (parts === null || !isEnded) return broken(line, 'it is no line of an audit');
    if (parts.prev !== prev)
      return broken(line, 'it does not follow the line above: one is missing, or moved');
    if (parts.hash !== sha256(prev, parts.record)) return broken(line, 'it was altered');
    prev = parts.hash;
    const found = await inspect(line, parts.record, head);
    if (found !== null) return broken(line, found);
  }
  if (line < head.records + 1)
    return broken(
      line + 1,
      `the file ends before it: ${head.records + 1 - line} lines are missing`,
    );
  if (prev !== head.tip)
    return broken(null, 'the lines were chained anew: they are not those that were signed');
  return { isWhole: true, head, fingerprint };
}

async function openHead({ text, isEnded }: { text: Buffer; isEnded: boolean }) {
  const line = text.toString();
  const [, head, signature] = HEAD.exec(line) ?? [];
  // Bytes that are no text would read as another text.
  const isText = Buffer.from(line).equals(text);
  if (head === undefined || signature === undefined || !isEnded || !isText)
    return 'it is no head of an audit';
  const fingerprint = await signerOf(head, signature);
  if (fingerprint === null) return 'the head was altered: its signature does not fit';
  return { head: JSON.parse(head) as AuditHead, fingerprint };
}

function broken(line: number | null, reason: string): Verdict {
  return { isWhole: false, line, reason };
}

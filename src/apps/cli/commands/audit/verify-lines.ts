import { readLine, sha256 } from '#src/kernel/event-store/chain.ts';
import { signerOf } from '#src/features/archive/signature.ts';
import { firstHash, type AuditHead } from '#src/features/audit/head.ts';

/** Result of a verification. `line` counts from 1; null if no single line is at fault. */
export type Verdict =
  | { isWhole: true; head: AuditHead; fingerprint: string }
  | { isWhole: false; line: number | null; reason: string };

/** Called with each record whose hash is right; a returned reason ends the verification. */
export type InspectRecord = (
  line: number,
  record: Buffer,
  head: AuditHead,
) => Promise<string | null>;

const HEAD = /^\{"head":(\{.*\}),"signature":"([\w-]+\.\.[\w-]+)"\}$/s;

/**
 * Verifies that lines are a complete, unaltered audit, from the lines alone. Reports the first line
 * that was altered or is missing.
 * @param lines without their line feeds; `isEnded` is false for a line without one
 */
export async function verifyLines(
  lines: AsyncIterable<{ text: Buffer; isEnded: boolean }>,
  inspect: InspectRecord = () => Promise.resolve(null),
): Promise<Verdict> {
  const iterator = lines[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done === true) return broken(1, 'the file is empty');
  const opened = await openHead(first.value);
  if (typeof opened === 'string') return broken(1, opened);
  const { head, fingerprint } = opened;
  let prev = firstHash(head);
  let line = 1;
  for await (const { text, isEnded } of { [Symbol.asyncIterator]: () => iterator }) {
    line += 1;
    if (line > head.records + 1) return broken(line, 'the audit ended before this line');
    const parts = readLine(text);
    if (parts === null || !isEnded) return broken(line, 'it is not a line of an audit');
    if (parts.prev !== prev)
      return broken(line, 'it does not follow the line above: a line is missing or was moved');
    if (parts.hash !== sha256(prev, parts.record)) return broken(line, 'it was altered');
    prev = parts.hash;
    const found = await inspect(line, parts.record, head);
    if (found !== null) return broken(line, found);
  }
  if (line < head.records + 1)
    return broken(
      line + 1,
      `the file ends before this line: ${head.records + 1 - line} lines are missing`,
    );
  if (prev !== head.tip)
    return broken(null, 'the lines were chained anew: they differ from the signed ones');
  return { isWhole: true, head, fingerprint };
}

async function openHead({ text, isEnded }: { text: Buffer; isEnded: boolean }) {
  const line = text.toString();
  const [, head, signature] = HEAD.exec(line) ?? [];
  // Bytes that are not UTF-8 would decode to another text.
  const isText = Buffer.from(line).equals(text);
  if (head === undefined || signature === undefined || !isEnded || !isText)
    return 'it is not the head of an audit';
  const fingerprint = await signerOf(head, signature);
  if (fingerprint === null) return 'the head was altered: its signature does not match';
  return { head: JSON.parse(head) as AuditHead, fingerprint };
}

function broken(line: number | null, reason: string): Verdict {
  return { isWhole: false, line, reason };
}

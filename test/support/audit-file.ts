import { chainLine, recordText } from '#src/kernel/event-store/chain.ts';
import { firstHash, type AuditHead, type AuditScope } from '#src/features/audit/head.ts';
import type { AuditKey } from '#src/start/audit-key.ts';
import { verifyLines, type Verdict } from '#src/apps/cli/commands/audit/verify-lines.ts';
import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';

const scope: AuditScope = {
  format: 'bss-audit-1',
  log: 'of a test',
  organization: null,
  from: null,
  to: '2026-11-21T00:00:00.000Z',
  after: 0,
  up_to: 100,
};

/** A record like those of the event store; the text may hold anything. */
export function recordOf(sequence: number, text: string): RawRecord {
  return {
    sequence,
    storedAt: '2026-11-20T09:30:00.123456789Z',
    subject: `evt.acme.session.ses_${sequence}.requested`,
    headers: [['ce-id', `evt_${sequence}`]],
    body: JSON.stringify({ data: { description: text } }),
  };
}

/** The lines of an audit's file, without their line feeds. */
export async function auditOf(key: AuditKey, records: readonly RawRecord[]): Promise<string[]> {
  const lines: string[] = [];
  let tip = firstHash(scope);
  for (const record of records) {
    const { line, hash } = chainLine(tip, recordText(record));
    lines.push(line);
    tip = hash;
  }
  const facts = { exported_at: '2026-11-21T00:00:00.001Z', records: records.length, tip };
  const head = JSON.stringify({ ...scope, ...facts } satisfies AuditHead);
  return [`{"head":${head},"signature":"${await key.sign(head)}"}`, ...lines];
}

export function fileOf(lines: readonly string[]): Buffer {
  return Buffer.from(lines.map((line) => `${line}\n`).join(''));
}

export function verdictOnFile(file: Buffer): Promise<Verdict> {
  return verifyLines(linesIn(file));
}

/** The line that the check names, or that the file is complete. */
export async function found(file: Buffer): Promise<number | 'whole' | null> {
  const verdict = await verdictOnFile(file);
  return verdict.isWhole ? 'whole' : verdict.line;
}

async function* linesIn(file: Buffer) {
  let from = 0;
  for (let at = file.indexOf(0x0a); at !== -1; at = file.indexOf(0x0a, from)) {
    yield { text: file.subarray(from, at), isEnded: true };
    from = at + 1;
  }
  if (from < file.length) yield { text: file.subarray(from), isEnded: false };
}

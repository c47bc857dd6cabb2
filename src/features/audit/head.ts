import { sha256 } from '#src/kernel/event-store/chain.ts';

/**
 * An audit is an NDJSON file. The first line is the signed head, every other line a chained record
 * (src/kernel/event-store/chain.ts). The first record's `prev` is the hash of the scope
 * (`firstHash`).
 */
export type AuditScope = {
  format: 'bss-audit-1';
  /** Id of the event store; a store created anew has another id. */
  log: string;
  /** null: all organizations and the fleet. */
  organization: string | null;
  /** ISO 8601 UTC by the event store's clock; null: from the first record on. */
  from: string | null;
  /** Not included. */
  to: string;
  /** The sequences of the span: above `after`, up to and including `up_to`. */
  after: number;
  up_to: number;
  /** The records are those that organizations get (`records.ts`); absent: as they are stored. */
  form?: 'public';
};

/** The signed first line. */
export type AuditHead = AuditScope & {
  exported_at: string;
  records: number;
  /** The hash of the last line; without records, `firstHash` of the scope. */
  tip: string;
};

/** Signs heads; `fingerprint` is the public key's. */
export type AuditSigner = { fingerprint: string; sign(text: string): Promise<string> };

/** The first line of an audit, with its line feed. */
export async function firstLine(
  scope: AuditScope,
  { records, tip }: Pick<AuditHead, 'records' | 'tip'>,
  signer: AuditSigner,
): Promise<{ head: AuditHead; line: string }> {
  const head: AuditHead = { ...scope, exported_at: new Date().toISOString(), records, tip };
  const text = JSON.stringify(head);
  return { head, line: `{"head":${text},"signature":"${await signer.sign(text)}"}\n` };
}

export function firstHash(scope: AuditScope): string {
  const { format, log, organization, from, to, after, up_to } = scope;
  return sha256('', JSON.stringify([format, log, organization, from, to, after, up_to]));
}

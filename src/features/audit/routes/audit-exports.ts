import type { ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import {
  firstHash,
  firstLine,
  type AuditScope,
  type AuditSigner,
} from '#src/features/audit/head.ts';
import { createFairSlots, type FairSlots } from '#src/kernel/async/fair-slots.ts';
import { chainedLines, type ChainedLines } from '#src/features/audit/records.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import type { RawRecords } from '#src/kernel/event-store/raw-records.ts';

/** What an audit is made of. */
export type AuditSource = {
  records: RawRecords;
  /** The key that signs; null: this process has none. */
  findSigner: () => Promise<AuditSigner | null>;
};

/** An export reads its records twice, and each takes some 0.03 ms a time. */
const RECORDS_MAX = 100_000;
const LIMITS: Limits = { exports: 12, sumMs: 60_000, stallMs: 30_000, exportMs: 600_000 };
/** Exports that read at once: one whose client reads slowly only has its place meanwhile. */
const READS = { slots: 2, slotsPerOwner: 1 };
const RETRY_AFTER_SECONDS = 10;

/** How many exports there are, and how long each may keep its place, in ms. */
type Limits = {
  /** At once in this process, one of an organization. */
  exports: number;
  /** The first reading; the client waits for it, and what stands before the service for 75 s. */
  sumMs: number;
  /** A client that takes nothing. */
  stallMs: number;
  /** The second reading and its bytes, however slowly the client takes them. */
  exportMs: number;
};

/** The audits that this process exports. */
export type AuditExports = {
  /**
   * The bytes of an audit: its head, then its records, as fast as the client takes them. The head
   * has the hash of the last line, so the records are read twice: to compute it, and to send them.
   * @throws Unavailable
   */
  open(
    readScope: () => Promise<AuditScope>,
    organizationId: string,
    to: { isGzip: boolean; response: ServerResponse },
  ): Promise<Readable | Rejection>;
};

export function createAuditExports(
  dependencies: { audit: AuditSource },
  limits = LIMITS,
): AuditExports {
  const running = new Set<string>();
  const turns = createFairSlots(READS);

  return {
    async open(readScope, organizationId, { isGzip, response }) {
      const retry = { retryAfterSeconds: RETRY_AFTER_SECONDS };
      if (running.has(organizationId)) return reject('STREAM_LIMIT_EXCEEDED', { limit: 1 }, retry);
      if (running.size >= limits.exports)
        return reject('UNAVAILABLE', { part: 'audit-export' }, retry);
      if (response.closed) return reject('UNAVAILABLE', { part: 'audit-export' }, retry);
      running.add(organizationId);
      response.once('close', () => running.delete(organizationId));
      const { records, findSigner } = dependencies.audit;
      const signer = await findSigner();
      if (signer === null)
        return reject('UNAVAILABLE', { part: 'audit-key' }, { ...retry, ...NO_KEY });
      const scope: AuditScope = { ...(await readScope()), form: 'public' };
      const read = () => inTurns(turns, organizationId, chainedLines(records, scope));
      const summed = await sumUp(read(), scope, { response, ms: limits.sumMs });
      if ('code' in summed) return summed;
      const { line } = await firstLine(scope, summed, signer);
      const over = setTimeout(() => response.destroy(), limits.exportMs).unref();
      response.once('close', () => clearTimeout(over));
      return bytesOf(line, linesOf(read(), scope, summed), { isGzip, limits });
    },
  };
}

const NO_KEY = {
  message:
    'This server has no key that signs audits: its operator has to name one in AUDIT_KEY_FILE.',
};

const TOO_LONG = {
  message: 'The events of the span could not be read in time: ask for a shorter one.',
};

/** The same, each batch read when it is this organization's turn. */
async function* inTurns(
  turns: FairSlots,
  organizationId: string,
  lines: AsyncGenerator<ChainedLines, void, void>,
): AsyncGenerator<ChainedLines, void, void> {
  try {
    for (;;) {
      const turn = await turns.acquire(organizationId);
      const next = await lines.next().finally(() => turn?.[Symbol.dispose]());
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    await lines.return();
  }
}

type Sum = { records: number; tip: string };

/** The number of records and the last hash. */
async function sumUp(
  lines: AsyncIterable<ChainedLines>,
  scope: AuditScope,
  { response, ms }: { response: ServerResponse; ms: number },
): Promise<Sum | Rejection> {
  const until = performance.now() + ms;
  let sum: Sum = { records: 0, tip: firstHash(scope) };
  for await (const { records, tip } of lines) {
    sum = { records, tip };
    if (records > RECORDS_MAX)
      return reject(
        'INVALID_REQUEST',
        { records_max: RECORDS_MAX },
        { message: `The span has more than ${RECORDS_MAX} events: ask for a shorter one.` },
      );
    // The client has left.
    if (response.destroyed)
      return reject('UNAVAILABLE', { part: 'audit-export' }, { retryAfterSeconds: 1 });
    if (performance.now() >= until)
      return reject(
        'UNAVAILABLE',
        { part: 'audit-export' },
        { retryAfterSeconds: RETRY_AFTER_SECONDS, ...TOO_LONG },
      );
  }
  return sum;
}

/** @throws Error where the records are not those that were signed: the client gets no end */
async function* linesOf(lines: AsyncIterable<ChainedLines>, scope: AuditScope, signed: Sum) {
  let sent: Sum = { records: 0, tip: firstHash(scope) };
  for await (const { text, ...sum } of lines) {
    if (text !== '') yield text;
    sent = sum;
  }
  if (sent.records !== signed.records || sent.tip !== signed.tip)
    throw new Error('the records differ from those that were read first');
}

function bytesOf(
  first: string,
  lines: AsyncIterable<string>,
  { isGzip, limits: { stallMs } }: { isGzip: boolean; limits: Limits },
): Readable {
  async function* parts() {
    yield first;
    for await (const text of lines) {
      const stalled = setTimeout(() => plain.destroy(new Error('the client stalled')), stallMs);
      try {
        yield text;
      } finally {
        clearTimeout(stalled);
      }
    }
  }
  const plain = Readable.from(parts(), { objectMode: false });
  if (!isGzip) return plain;
  const compressed = createGzip();
  pipeline(plain, compressed, () => undefined);
  return compressed;
}

import { setTimeout as sleep } from 'node:timers/promises';
import { decode, headersOf, MalformedEvent, UnknownEvent } from '#events/codec.ts';
import { isPublic, publicBodyOf } from '#events/public-event.ts';
import { chainLine, recordText } from '#src/kernel/event-store/chain.ts';
import { WrittenByNewer } from '#src/kernel/errors.ts';
import type { RawRecord, RawRecords } from '#src/kernel/event-store/raw-records.ts';
import { firstHash, type AuditScope } from './head.ts';

/** Lines of an audit, each with its line feed; how many there are up to here, and the last hash. */
export type ChainedLines = { text: string; records: number; tip: string };

/** Sequences of the public form that are read in one go. */
const SPAN = 50_000;
/** Records that are made public in one go; then the process rests for as long as that took. */
const TURN = 50;

/**
 * The records of an audit as chained lines, in batches. The same scope has the same lines each
 * time: what is stored does not change.
 * @throws WrittenByNewer for the public form of an event that this process does not know
 */
export async function* chainedLines(
  source: RawRecords,
  scope: AuditScope,
): AsyncGenerator<ChainedLines, void, void> {
  let tip = firstHash(scope);
  let records = 0;
  for await (const batch of recordTexts(source, scope)) {
    let text = '';
    for (const record of batch) {
      const { line, hash } = chainLine(tip, record);
      text += `${line}\n`;
      tip = hash;
    }
    records += batch.length;
    yield { text, records, tip };
  }
}

/** The texts of an audit's records, in the form that its scope names. A batch may be empty. */
export async function* recordTexts(
  source: RawRecords,
  { after, up_to: upTo, organization: organizationId, form }: AuditScope,
): AsyncGenerator<string[], void, void> {
  if (form === undefined) {
    for await (const batch of source.read({ after, upTo, organizationId }))
      yield batch.map(recordText);
    return;
  }
  for (let place = after; place < upTo; place += SPAN) {
    const range = { after: place, upTo: Math.min(place + SPAN, upTo), organizationId };
    for await (const batch of source.read(range)) yield* publicTexts(batch);
    // The reader gets a turn also where the organization has no records.
    yield [];
  }
}

async function* publicTexts(batch: readonly RawRecord[]): AsyncGenerator<string[], void, void> {
  for (let from = 0; from < batch.length; from += TURN) {
    const began = performance.now();
    const texts = batch.slice(from, from + TURN).flatMap((record) => {
      const shown = publicRecord(record);
      return shown === null ? [] : [recordText(shown)];
    });
    await sleep(performance.now() - began);
    yield texts;
  }
}

/**
 * The record without what is internal to the service; null where organizations do not get the
 * event. Of an event that no process can read, which may hold anything, only that it is there.
 */
function publicRecord(record: RawRecord): RawRecord | null {
  const { sequence, storedAt, subject } = record;
  const named = new Map(record.headers);
  try {
    const event = decode(subject, (name) => named.get(name) ?? '', record.body, sequence);
    if (!isPublic(event.type)) return null;
    const headers = Object.entries(headersOf(event));
    return { sequence, storedAt, subject, headers, body: publicBodyOf(event) };
  } catch (error) {
    if (error instanceof UnknownEvent) throw new WrittenByNewer(error);
    if (!(error instanceof MalformedEvent)) throw error;
    return { sequence, storedAt, subject, headers: [], body: '' };
  }
}

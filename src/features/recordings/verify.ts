import { createHash } from 'node:crypto';
import type { RefOf } from '#events/events.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import { firstLink, nextLink } from './chain.ts';
import { readRecordingIndex } from './recording-index.ts';

/** What a check of a recording found. */
export type RecordingCheck = {
  /** Segments whose bytes have the hash that the event log has. */
  proved: number;
  /** Segments that are stored and not in the log: of the last minute, or of a lost server. */
  unrecorded: number;
  gaps: number;
  /** Why the recording is not what the log says, as sentences; empty: it is. */
  findings: string[];
};

/**
 * Compares a recording with the event log: the chain of its events, and the bytes of each segment.
 * @throws Unavailable; WrittenByNewer
 */
export async function verifyRecording(
  eventStore: Pick<EventStore, 'history'>,
  objects: Pick<ObjectStore, 'list' | 'get'>,
  session: RefOf<'session'>,
): Promise<RecordingCheck> {
  const findings = await verifyChain(eventStore, session);
  const { segments, gaps } = await readRecordingIndex(eventStore, objects, session);
  const check: RecordingCheck = { proved: 0, unrecorded: 0, gaps: gaps.length, findings };
  for (const { from, reason } of gaps)
    if (reason === 'missing') findings.push(`the segment from ${from} is gone`);
  for (const { key, number, sha256, recorded } of segments) {
    const got = await objects.get(key);
    const hash = createHash('sha256');
    for await (const piece of got?.body ?? []) hash.update(piece);
    if (hash.digest('hex') !== sha256) findings.push(`segment ${number} has other bytes`);
    else check[recorded ? 'proved' : 'unrecorded'] += 1;
  }
  return check;
}

const types = new Set(['session.recording-stored']);

async function verifyChain(
  eventStore: Pick<EventStore, 'history'>,
  session: RefOf<'session'>,
): Promise<string[]> {
  const findings: string[] = [];
  let chain = firstLink(session);
  let last = 0;
  for await (const event of eventStore.history<'session'>(session, { types })) {
    if (event.type !== 'session.recording-stored') continue;
    for (const { number, sha256 } of event.data.segments) {
      if (number !== last + 1) findings.push(`segment ${number} follows segment ${last}`);
      last = number;
      chain = nextLink(chain, sha256);
    }
    if (event.data.chain !== chain) {
      findings.push(`event ${event.sequence} has another chain than its segments`);
      chain = event.data.chain;
    }
  }
  return findings;
}

import { sessionAnywhere, parseSubject, streamFilter } from '#events/subjects.ts';
import { EVENTS_MAX } from '#src/kernel/event-store/batch.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { RawRecord, RawRecords } from '#src/kernel/event-store/raw-records.ts';
import { fleetOf, readSteps } from '../session-at.ts';
import type { Life } from './life.ts';

/** What a life is read from. */
export type LifeSource = { eventStore: EventStore; records: RawRecords };

/**
 * The recorded life of a session; null if there is no such session.
 * @param warn called for each of its events that cannot be decoded; the life includes them
 * @throws Unavailable
 */
export async function readLife(
  { eventStore, records }: LifeSource,
  sessionId: string,
  warn: (text: string) => void,
): Promise<Life | null> {
  const end = await eventStore.lastSequence();
  const read = (filter: string, after = 0, upTo = end) =>
    collect(records, { filter, after, upTo: Math.min(end, upTo) });
  const own = await read(sessionAnywhere(sessionId));
  const aggregate = parseSubject(own[0]?.subject ?? '')?.aggregate;
  if (aggregate?.kind !== 'session') return null;
  const { organizationId } = aggregate;
  const { workloads } = fleetOf(await readSteps(eventStore, sessionId, warn));
  const browsers = await Promise.all(workloads.map((filter) => read(filter)));

  const ledger = streamFilter({ kind: 'ledger', organizationId });
  const lines = new Map<number, RawRecord>();
  // Ledger events are appended in one batch with their session event, so read around each.
  for (const { subject, sequence } of own) {
    if (!moving.has(subject.slice(subject.lastIndexOf('.') + 1))) continue;
    const [after, upTo] = [Math.max(0, sequence - EVENTS_MAX), sequence + EVENTS_MAX];
    for (const line of await read(ledger, after, upTo))
      if (sessionIn(line) === sessionId) lines.set(line.sequence, line);
  }
  const before = new Map<number, RawRecord>();
  for (const { sequence } of lines.values()) {
    const last = await lastBefore(eventStore, organizationId, sequence);
    if (last === 0 || lines.has(last)) continue;
    for (const line of await read(ledger, last - 1, last)) before.set(line.sequence, line);
  }
  return {
    sessionId,
    organizationId,
    eventStoreId: (await eventStore.info()).id,
    exportedAt: new Date().toISOString(),
    records: inOrder([...own, ...browsers.flat(), ...lines.values()]),
    ledgerBefore: inOrder([...before.values()]),
  };
}

/** The session's events that change its organization's ledger. */
const moving = new Set(['requested', 'extended', 'stopped', 'failed']);

async function collect(
  records: RawRecords,
  range: { filter: string; after: number; upTo: number },
): Promise<RawRecord[]> {
  const found: RawRecord[] = [];
  for await (const batch of records.read(range)) found.push(...batch);
  return found;
}

/** Sequence of the ledger's last event before the given one; 0: that is the first. */
async function lastBefore(
  eventStore: EventStore,
  organizationId: string,
  sequence: number,
): Promise<number> {
  const last = await eventStore.readLastUpTo({ kind: 'ledger', organizationId }, sequence - 1);
  return last?.sequence ?? 0;
}

/** The session that a ledger's record names; null: none, or the record cannot be read. */
function sessionIn({ body }: RawRecord): string | null {
  try {
    const { data } = JSON.parse(body) as { data?: { sessionId?: string } };
    return data?.sessionId ?? null;
  } catch {
    return null;
  }
}

function inOrder(records: readonly RawRecord[]): RawRecord[] {
  return records.toSorted((one, other) => one.sequence - other.sequence);
}

import { aggregates, isOf, type RecordedEvent } from '#events/events.ts';
import { streamFilter, subjectOf } from '#events/subjects.ts';
import { EVENTS_MAX } from '#src/kernel/event-store/batch.ts';
import type { EventStore, ReadOptions } from '#src/kernel/event-store/event-store.ts';
import { sequenceAt } from '#src/kernel/event-store/load-state.ts';
import type { Story } from './story.ts';

/** An event of a server up to this long after the session's end may still be its cause. */
const AFTERWARDS_MS = 60_000;
/** The stops that one request made are stored at most 30 s after it; clocks may differ. */
const JOINING_MS = 90_000;
/** Routine events of servers, which never end a session. */
const HOUSEKEEPING = ['server.pool-resized', 'server.reconciled', 'server.carried-forward'];
const serverTypes = Object.keys(aggregates.server.events).filter(
  (type) => !HOUSEKEEPING.includes(type),
);

export type RelatedOptions = {
  now: () => number;
  onUnreadable: ReadOptions['onUnreadable'];
  /** The newest browsers and servers that are asked; left out: all. */
  fleetMax?: number;
  /** Moves of credits that are looked up, the first and the newest; left out: all. */
  movesMax?: number;
  /** Once it aborts, events may be missing. */
  signal?: AbortSignal;
};

/**
 * All events related to a session, oldest first: its own, those of its browsers, those of their
 * servers in that time, the ledger's events for the session, and the request that stopped it among
 * others.
 */
export async function readRelated(
  eventStore: EventStore,
  story: Story,
  options: RelatedOptions,
): Promise<RecordedEvent[]> {
  const { fleetMax = Infinity } = options;
  const { workloadIds, serverIds } = story.fleet;
  const related: RecordedEvent[] = [...story.events];
  for (const id of newest(workloadIds, fleetMax))
    related.push(...(await readAll(eventStore, [streamFilter({ kind: 'workload', id })], options)));
  for (const id of newest(serverIds, fleetMax))
    related.push(...(await readServer(eventStore, id, story, options)));
  related.push(...(await readLedger(eventStore, story, options)));
  related.push(...(await readJoining(eventStore, story, options)));
  return related.toSorted((one, other) => one.sequence - other.sequence);
}

/** The server's events while the session lived, and shortly after. */
async function readServer(
  eventStore: EventStore,
  id: string,
  { events: [first], last }: Story,
  options: RelatedOptions,
): Promise<RecordedEvent[]> {
  const server = { kind: 'server', id } as const;
  const subjects = serverTypes.map((type) => subjectOf(server, type));
  const until = Date.parse(last.time) + AFTERWARDS_MS;
  const isPast = until < options.now();
  const range = {
    after: first?.sequence ?? 0,
    // The store's clock may differ from that of the process that decided.
    ...(isPast && {
      upTo: await sequenceAt({ eventStore, now: options.now }, until + AFTERWARDS_MS),
    }),
  };
  const found = await readAll(eventStore, subjects, { ...options, ...range });
  return found.filter(({ time }) => Date.parse(time) <= until);
}

/** The request that stopped several sessions, this one among them. */
async function readJoining(
  eventStore: EventStore,
  { events }: Story,
  options: RelatedOptions,
): Promise<RecordedEvent[]> {
  const stop = events.find(({ type }) => type === 'session.stop-requested');
  const cause = stop?.metadata.causationId ?? null;
  if (stop === undefined || cause === null) return [];
  const { organizationId } = stop.aggregate;
  const type = 'organization.sessions-stop-requested';
  const subject = subjectOf({ kind: 'organization', organizationId }, type);
  const since = Date.parse(stop.time) - JOINING_MS;
  const after = await sequenceAt({ eventStore, now: options.now }, since);
  const range = { after, upTo: stop.sequence };
  const found = await readAll(eventStore, [subject], { ...options, ...range });
  return found.filter(({ id }) => id === cause);
}

/** Ledger events are appended in one batch with their session event, so read around each. */
async function readLedger(
  eventStore: EventStore,
  { events }: Story,
  options: RelatedOptions,
): Promise<RecordedEvent[]> {
  const found = new Map<string, RecordedEvent>();
  const moves = events.filter(({ type }) => moving.includes(type));
  const { movesMax = Infinity } = options;
  const asked = moves.length > movesMax ? [moves[0], ...newest(moves, movesMax - 1)] : moves;
  for (const event of asked) {
    if (event === undefined) continue;
    const { organizationId, id } = event.aggregate;
    const { sequence } = event;
    const batches = eventStore.read({
      subjects: [streamFilter({ kind: 'ledger', organizationId })],
      after: Math.max(0, sequence - EVENTS_MAX),
      upTo: sequence + EVENTS_MAX,
      includesArchive: true,
      onUnreadable: options.onUnreadable,
      ...(options.signal && { signal: options.signal }),
    });
    reading: for await (const lines of batches)
      for (const line of lines) {
        if (!isOf('ledger', line) || !('sessionId' in line.data)) continue;
        if (line.data.sessionId !== id) continue;
        found.set(line.id, line);
        if (line.metadata.commandId === event.metadata.commandId) break reading;
      }
  }
  return [...found.values()];
}

const moving = ['session.requested', 'session.extended', 'session.stopped', 'session.failed'];

async function readAll(
  eventStore: EventStore,
  subjects: readonly string[],
  { onUnreadable, signal, after, upTo }: Pick<RelatedOptions, 'onUnreadable' | 'signal'> & Range,
): Promise<RecordedEvent[]> {
  const range = { ...(after !== undefined && { after }), ...(upTo !== undefined && { upTo }) };
  const found: RecordedEvent[] = [];
  for await (const events of eventStore.read({
    ...range,
    subjects,
    includesArchive: true,
    onUnreadable,
    ...(signal && { signal }),
  }))
    found.push(...events);
  return found;
}
type Range = { after?: number; upTo?: number };

function newest<Item>(items: readonly Item[], max: number): readonly Item[] {
  return items.length > max ? items.slice(items.length - max) : items;
}

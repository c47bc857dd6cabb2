import { expect, vi } from 'vitest';
import { isOf, type RecordedEvent } from '#events/events.ts';
import { filters, subjectOf } from '#events/subjects.ts';
import { organizationSessions } from '#projections/organization-sessions.ts';
import {
  runProjection,
  type ParkedEvent,
  type ProjectedLog,
  type Progress,
} from '#projections/runner/run-projection.ts';
import { idOf, type Projection } from '#projections/projection.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import type { Views } from '#projections/store/views.ts';
import { createMemoryEventLog } from '#src/event-store/event-store.memory.ts';
import type { EventLog, FollowOptions } from '#src/event-store/event-store.ts';
import { createMemoryParked } from '#src/messaging/dead-letters.memory.ts';
import type { ParkedEvents } from '#src/messaging/dead-letters.ts';
import { accessed, activated, queued, requested, T0, MINUTE } from './examples.ts';
import { record, sessionRef } from './history.ts';

export const eventually = { timeout: 15_000, interval: 5 };

/**
 * How many events each session has: a view that depends on the one before, so none may be folded
 * twice.
 */
export const eventCounts: Projection<{ events: number; last: number }> = {
  name: 'event-counts',
  version: 1,
  subjects: filters.sessions,
  readsView: true,
  key: (event) => (isOf('session', event) ? event.aggregate.id : null),
  aggregateOf: (id) => sessionRef(id),
  evolve: (view, event) => ({ events: (view?.events ?? 0) + 1, last: event.sequence }),
  lists: (view) => ({ names: ['all', `events/${view.events}`], order: view.last }),
};

/**
 * A log in which sessions 0 to `sessions` - 1 of one organization have lived four events each,
 * interleaved.
 */
export async function aLogOf(sessions: number): Promise<EventLog> {
  const log = createMemoryEventLog();
  const lives = [requested(), queued, activated(), accessed(T0 + MINUTE)];
  for (const event of lives)
    for (let n = 0; n < sessions; n += 1) await record<'session'>(log, sessionRef(`s${n}`), event);
  return log;
}

/**
 * The log, but that its followers get some events otherwise, or (null) as ones that cannot be read.
 */
export function changed(
  log: EventLog,
  change: (event: RecordedEvent) => RecordedEvent | null,
): EventLog {
  async function* follow(options: FollowOptions): AsyncGenerator<RecordedEvent[], void, void> {
    for await (const batch of log.follow(options)) {
      const read = batch.map((event) => {
        const { sequence } = event;
        const subject = subjectOf(event.aggregate, event.type);
        const seen = change(event);
        if (seen === null) options.onMalformed({ sequence, subject, reason: 'not readable' });
        return seen;
      });
      const events = read.filter((event) => event !== null);
      if (events.length > 0) yield events;
    }
  }
  return { ...log, follow };
}

export type Projector = AsyncDisposable & {
  progress: Progress[];
  parked: { event: ParkedEvent; reason: string }[];
  /** Rejects where the run did. */
  stop(): Promise<void>;
};

/**
 * Runs a projection until it is disposed or stopped. `onProgress` sees each step as it is taken.
 */
export function project<View>(
  projection: Projection<View>,
  log: ProjectedLog,
  views: Views,
  onProgress: (progress: Progress) => void = () => {},
  kept: ParkedEvents = createMemoryParked(),
): Projector {
  const abort = new AbortController();
  const progress: Projector['progress'] = [];
  const parked: Projector['parked'] = [];
  const running = runProjection({
    projection,
    log,
    views,
    parked: kept,
    signal: abort.signal,
    onProgress(step) {
      progress.push(step);
      onProgress(step);
    },
    onParked: (event, reason) => parked.push({ event, reason }),
  });
  async function stop() {
    abort.abort();
    await running;
  }
  return { progress, parked, stop, [Symbol.asyncDispose]: stop };
}

export async function untilFolded<View>(
  projection: Projection<View>,
  views: Views,
  upTo: number,
): Promise<void> {
  await vi.waitUntil(
    async () => (await views.checkpoint(idOf(projection)).catch(() => 0)) >= upTo,
    eventually,
  );
}

/**
 * All that a projection holds of the log's sessions: each view, each list that one of them ever
 * stood in.
 */
async function contentOf<View>(
  projection: Projection<View>,
  views: Views,
  events: readonly RecordedEvent[],
): Promise<unknown> {
  const keys = new Set<string>();
  const names = new Set<string>();
  const folded = new Map<string, View | null>();
  for (const event of events) {
    const key = projection.key(event);
    if (key === null) continue;
    const before = projection.readsView ? (folded.get(key) ?? null) : null;
    const view = projection.evolve(before, event);
    folded.set(key, view);
    keys.add(key);
    for (const name of view === null ? [] : (projection.lists?.(view, event).names ?? []))
      names.add(name);
  }
  const id = idOf(projection);
  const pages = [...names].map(async (name) => [
    name,
    await views.page(id, { lists: [name], offset: 0, limit: 1000 }),
  ]);
  return { texts: await views.readMany(id, [...keys]), lists: await Promise.all(pages) };
}

/**
 * Holds that the views are those which a projector alone, on a store without mishap, makes of the
 * log.
 */
export async function expectAsOfOneFold<View>(
  projection: Projection<View>,
  views: Views,
  log: EventLog,
): Promise<void> {
  await using fresh = createMemoryViews();
  await using _ = project(projection, log, fresh);
  const end = await log.lastSequence(projection.subjects);
  await untilFolded(projection, fresh, end);
  const events = await eventsOf(log);
  const expected = await contentOf(projection, fresh, events);
  expect(await contentOf(projection, views, events)).toEqual(expected);
}

async function eventsOf(log: EventLog): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  const stop = new AbortController();
  const { signal } = stop;
  const end = await log.lastSequence();
  for await (const batch of log.follow({
    subjects: filters.all,
    after: 0,
    signal,
    onMalformed() {},
  })) {
    events.push(...batch);
    if ((batch.at(-1)?.sequence ?? 0) >= end) break;
  }
  return events;
}

export const everyProjection: Projection<unknown>[] = [organizationSessions, eventCounts];

import { expect, vi } from 'vitest';
import { hasState, isOf, type EventWithState, type RecordedEvent } from '#events/events.ts';
import { filters, subjectOf } from '#events/subjects.ts';
import { organizationSessions } from '#projections/organization-sessions.ts';
import { runProjection } from '#projections/runner/run-projection.ts';
import type {
  ProjectionDeadLetter,
  ProjectionSource,
  Progress,
} from '#projections/runner/projector.ts';
import { projectionId, type Projection } from '#projections/projection.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import type { Views } from '#projections/store/views.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { EventStore, SubscribeOptions } from '#src/kernel/event-store/event-store.ts';
import { createMemoryDeadLetters } from '#src/kernel/messaging/dead-letters.memory.ts';
import type { DeadLetterStore } from '#src/kernel/messaging/dead-letters.ts';
import { accessed, activated, queued, requested, T0, MINUTE } from './examples.ts';
import { record, sessionRef } from './history.ts';
import { lastOf } from '#test/support/stores/last-of.ts';

export const eventually = { timeout: 60_000, interval: 5 };

/** The last event of each session: whether a view has it is seen from outside. */
export const lastEvents: Projection<{ status: string; last: number }> = {
  name: 'last-events',
  version: 1,
  subjects: filters.sessions,
  key: (event) => (isOf('session', event) ? event.aggregate.id : null),
  aggregateOf: (id) => sessionRef(id),
  view: (event) =>
    isOf('session', event) ? { status: event.state.status, last: event.sequence } : null,
  lists: ({ status, last }) => ({ names: ['all', `status/${status}`], order: last }),
};

/**
 * An event store with the sessions s0, s1, … of one organization and four events of each. The
 * sequences for three sessions:
 *
 *                        s0  s1  s2
 *   session.requested     1   2   3
 *   session.queued        4   5   6
 *   session.activated     7   8   9
 *   session.accessed     10  11  12
 */
export async function eventStoreOfSessions(sessions: number): Promise<EventStore> {
  const eventStore = createMemoryEventStore();
  const lifecycle = [requested(), queued, activated(), accessed(T0 + MINUTE)];
  for (const event of lifecycle)
    for (let n = 0; n < sessions; n += 1)
      await record<'session'>(eventStore, sessionRef(`s${n}`), event);
  return eventStore;
}

/** The same event store after its events up to a sequence were removed. */
export function truncated(eventStore: EventStore, upTo: number): EventStore {
  return {
    ...eventStore,
    info: async () => ({ ...(await eventStore.info()), firstSequence: upTo + 1 }),
    read: ({ after = 0, ...range }) => eventStore.read({ ...range, after: Math.max(after, upTo) }),
    subscribe({ after, ...options }) {
      if (after !== 'end' && after < upTo) throw new Error(`events after ${after} are gone`);
      return eventStore.subscribe({ ...options, after });
    },
  };
}

/** The same event store, but its readers get changed events; null: the event is unreadable. */
export function withChangedEvents(
  eventStore: EventStore,
  change: (event: RecordedEvent) => RecordedEvent | null,
): EventStore {
  async function* changed(
    batches: AsyncIterable<RecordedEvent[]>,
    options: Pick<SubscribeOptions, 'onUnreadable'>,
  ): AsyncGenerator<RecordedEvent[], void, void> {
    for await (const batch of batches) {
      const read = batch.map((event) => {
        const { sequence } = event;
        const subject = subjectOf(event.aggregate, event.type);
        const seen = change(event);
        if (seen === null)
          options.onUnreadable({ sequence, subject, reason: 'not readable', kind: 'malformed' });
        return seen;
      });
      const events = read.filter((event) => event !== null);
      if (events.length > 0) yield events;
    }
  }
  return {
    ...eventStore,
    read: (options) => changed(eventStore.read(options), options),
    subscribe: (options) => changed(eventStore.subscribe(options), options),
  };
}

export type Projector = AsyncDisposable & {
  progress: Progress[];
  deadLetters: { event: ProjectionDeadLetter; reason: string }[];
  /** Stops the projector; rejects if its run failed. */
  stop(): Promise<void>;
};

/**
 * Runs a projection until it is stopped or disposed. `onProgress` is called synchronously.
 */
export function startProjector<View>(
  projection: Projection<View>,
  eventStore: ProjectionSource,
  views: Views,
  onProgress: (progress: Progress) => void = () => {},
  deadLetterStore: DeadLetterStore = createMemoryDeadLetters(),
): Projector {
  const abort = new AbortController();
  const progress: Projector['progress'] = [];
  const deadLetters: Projector['deadLetters'] = [];
  const running = runProjection({
    projection,
    eventStore,
    views,
    deadLetters: deadLetterStore,
    signal: abort.signal,
    onProgress(step) {
      progress.push(step);
      onProgress(step);
    },
    onDeadLetter: (event, reason) => deadLetters.push({ event, reason }),
  });
  async function stop() {
    abort.abort();
    await running;
  }
  return { progress, deadLetters, stop, [Symbol.asyncDispose]: stop };
}

export async function untilCheckpoint<View>(
  projection: Projection<View>,
  views: Views,
  upTo: number,
): Promise<void> {
  await vi.waitUntil(
    async () => (await views.checkpoint(projectionId(projection)).catch(() => 0)) >= upTo,
    eventually,
  );
}

/** All views of a projection for these events, and all lists that ever contained one of them. */
async function contentOf<View>(
  projection: Projection<View>,
  views: Views,
  events: readonly EventWithState[],
): Promise<unknown> {
  const keys = new Set<string>();
  const names = new Set<string>();
  for (const event of events) {
    const key = projection.key(event);
    if (key === null) continue;
    const view = projection.view(event);
    keys.add(key);
    for (const name of view === null ? [] : (projection.lists?.(view, event).names ?? []))
      names.add(name);
  }
  const id = projectionId(projection);
  const pages = [...names].map(async (name) => [
    name,
    await views.page(id, { lists: [name], offset: 0, limit: 1000 }),
  ]);
  return { texts: await views.readMany(id, [...keys]), lists: await Promise.all(pages) };
}

/** Expects the views to equal those of one projector that folds all events into a new store. */
export async function expectSameAsFreshFold<View>(
  projection: Projection<View>,
  views: Views,
  eventStore: EventStore,
): Promise<void> {
  await using fresh = createMemoryViews();
  await using _ = startProjector(projection, eventStore, fresh);
  const end = await lastOf(eventStore, projection.subjects);
  await untilCheckpoint(projection, fresh, end);
  const events = await eventsOf(eventStore);
  const expected = await contentOf(projection, fresh, events);
  expect(await contentOf(projection, views, events)).toEqual(expected);
}

async function eventsOf(eventStore: EventStore): Promise<EventWithState[]> {
  const events: EventWithState[] = [];
  const stop = new AbortController();
  const { signal } = stop;
  const end = await eventStore.lastSequence();
  for await (const batch of eventStore.subscribe({
    subjects: filters.all,
    after: 0,
    signal,
    onUnreadable() {},
  })) {
    events.push(...batch.filter(hasState));
    if ((batch.at(-1)?.sequence ?? 0) >= end) break;
  }
  return events;
}

export const testedProjections: Projection<unknown>[] = [organizationSessions, lastEvents];

import { setTimeout as pause } from 'node:timers/promises';
import { filters } from '#events/subjects.ts';
import type { RecordedEvent } from '#events/events.ts';
import { Unavailable } from '../errors.ts';
import { createBell } from './bell.ts';
import type { EventLog, FollowOptions } from './event-log.ts';
import { createNewestEvents, type Poison } from './newest-events.ts';

/** A log whose followers at its end share one reader; disposing ends the reader, and them. */
export type OneReaderLog = EventLog & AsyncDisposable;

/** Newest events that are kept, at least; who falls behind them reads the log by itself. */
const KEPT_MIN = 5_000;
/** Pause where the log does not say how far it is. */
const AWAY_MS = 250;

/**
 * Lets all followers of one process read the log's end through one reader, so that an event comes
 * over the wire once and is decoded once, however many follow. Each has its own place among the
 * newest events, which are kept here; one whose place is older catches up by a reader of its own,
 * then joins. What it is given is shared: nobody may change an event.
 * @param keptMin newest events that are kept, at least
 */
export async function throughOneReader(log: EventLog, keptMin = KEPT_MIN): Promise<OneReaderLog> {
  const stop = new AbortController();
  const bell = createBell();
  const newest = createNewestEvents(await log.lastSequence(), keptMin);
  let failure: unknown = null;
  /** What could not be read of a batch that is about to come. */
  let poisons: Poison[] = [];

  /** Both at once: whoever took the one before the other is there would pass the other over. */
  function keep(batch: readonly RecordedEvent[]): void {
    newest.keep(batch, poisons);
    poisons = [];
    bell.ring();
  }
  function keepAlone(): void {
    if (poisons.length > 0) keep([]);
  }
  async function read(): Promise<void> {
    const batches = log.follow({
      subjects: filters.all,
      after: newest.keptAfter(),
      signal: stop.signal,
      onMalformed(poison) {
        poisons.push(poison);
        // Its batch, where there is one, comes before anything else does.
        if (poisons.length === 1) setImmediate(keepAlone);
      },
    });
    for await (const batch of batches) keep(batch);
  }
  const reading = read()
    .catch((error: unknown) => {
      failure = error;
    })
    .finally(() => bell.ring());

  async function* follow(options: FollowOptions): AsyncGenerator<RecordedEvent[], void, void> {
    const signal = AbortSignal.any([options.signal, stop.signal]);
    let after: number | null = options.after === 'end' ? null : options.after;
    while (!signal.aborted) {
      if (failure !== null) throw failure;
      if (after === null) {
        after = await endOf(log, signal);
      } else if (after < newest.keptAfter()) {
        after = yield* catchUp(log, { ...options, signal }, after, newest.keptAfter());
      } else {
        const { batch, place } = newest.take(after, options);
        after = place;
        if (batch.length > 0) yield batch;
        else if (!newest.hasAfter(after)) await bell.heard(signal);
      }
    }
  }
  return {
    ...log,
    follow,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await reading;
    },
  };
}

/**
 * Yields what is older than what is kept; returns the place from which on the rest is.
 * @param kept what comes behind it is kept, unless so much comes meanwhile that it is not any more
 */
async function* catchUp(
  log: EventLog,
  options: FollowOptions,
  after: number,
  kept: number,
): AsyncGenerator<RecordedEvent[], number, void> {
  const target = (await endOf(log, options.signal, options.subjects)) ?? Infinity;
  if (target === Infinity) return after;
  if (after >= target) return Math.max(after, kept);
  const isThere = new AbortController();
  const signal = AbortSignal.any([options.signal, isThere.signal]);
  let place = after;
  const onMalformed: FollowOptions['onMalformed'] = (poison) => {
    options.onMalformed(poison);
    place = Math.max(place, poison.sequence);
    // No batch will end here: the last one that was to come cannot be read.
    if (place >= target) isThere.abort();
  };
  for await (const batch of log.follow({ ...options, after, signal, onMalformed })) {
    place = Math.max(place, batch.at(-1)?.sequence ?? 0);
    yield batch;
    if (place >= target) break;
  }
  return place;
}

/** How far the subjects go by now; null after a pause where the log does not say. */
async function endOf(
  log: EventLog,
  signal: AbortSignal,
  subjects?: readonly string[],
): Promise<number | null> {
  try {
    return await log.lastSequence(subjects);
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    await pause(AWAY_MS, undefined, { signal }).catch(() => undefined);
    return null;
  }
}

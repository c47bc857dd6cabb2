import { setTimeout as pause } from 'node:timers/promises';
import { filters } from '#events/subjects.ts';
import type { RecordedEvent } from '#events/events.ts';
import { Unavailable } from '#src/errors.ts';
import { createBackOff } from '#src/async/back-off.ts';
import { createBell, type Bell } from '#src/async/notifier.ts';
import type { EventLog, FollowOptions } from './event-store.ts';
import { createNewestEvents, type NewestEvents, type Poison } from './newest-events.ts';

/** A log whose followers at its end share one reader; disposing ends the reader, and them. */
export type OneReaderLog = EventLog & {
  /** False once the shared reader has read nothing for 3 s: its followers hear of nothing. */
  isHearing(): boolean;
} & AsyncDisposable;

export type OneReaderOptions = {
  /** Newest events that are kept, at least; default 5,000. */
  keptMin?: number;
  /** How long nothing is read before the reader counts as deaf; default 3 s. */
  deafAfterMs?: number;
  /** Called at each failure to read that is no outage; what failed is tried again. */
  onFailure?: (error: unknown, what: string) => void;
};

/** Who falls behind the newest events that are kept reads the log by itself. */
const KEPT_MIN = 5_000;
/**
 * A reader that was lost is replaced within milliseconds, but a log in which nothing happens gives
 * its first sign of life, a heartbeat, only 2 s later: until then it is not known to be deaf.
 */
const DEAF_AFTER_MS = 3_000;
/** Pause where the log does not say how far it is. */
const AWAY_MS = 250;

/**
 * Lets all followers of one process read the log's end through one reader, so that an event comes
 * over the wire once and is decoded once, however many follow. Each has its own place among the
 * newest events, which are kept here; one whose place is older catches up by a reader of its own,
 * then joins. What it is given is shared: nobody may change an event.
 *
 * Its followers never end by themselves. Whatever the log answers (a stream that a starting server
 * does not know yet, a permission that is gone for a moment), it is asked again, 100 ms later at
 * first and every 5 s at last, behind the last event that came: nothing is missed or doubled. Were
 * one answer the last, the process would never again hear of a revoked key or an ended session.
 */
export async function throughOneReader(
  log: EventLog,
  {
    keptMin = KEPT_MIN,
    deafAfterMs = DEAF_AFTER_MS,
    onFailure = () => undefined,
  }: OneReaderOptions = {},
): Promise<OneReaderLog> {
  const stop = new AbortController();
  const bell = createBell();
  const newest = createNewestEvents(await log.lastSequence(), keptMin);
  const reader = startReader(log, { newest, bell, deafAfterMs, signal: stop.signal, onFailure });

  async function* follow(options: FollowOptions): AsyncGenerator<RecordedEvent[], void, void> {
    const signal = AbortSignal.any([options.signal, stop.signal]);
    let after: number | null = options.after === 'end' ? null : options.after;
    while (!signal.aborted) {
      if (after === null) {
        after = await endOf(log, signal, onFailure);
      } else if (after < newest.keptAfter()) {
        after = yield* catchUp(log, { ...options, signal }, after, newest.keptAfter(), onFailure);
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
    isHearing: reader.isHearing,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await reader.ended;
    },
  };
}

/** Reads the log's end into the newest events, until the signal aborts, whatever fails. */
function startReader(
  log: EventLog,
  parts: {
    newest: NewestEvents;
    bell: Bell;
    deafAfterMs: number;
    signal: AbortSignal;
    onFailure: OnFailure;
  },
): { isHearing: () => boolean; ended: Promise<void> } {
  const { newest, bell, deafAfterMs, signal, onFailure } = parts;
  const backOff = createBackOff();
  /** When the last sign of life was missed; null while there are some. */
  let silentSince: number | null = null;
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
  function onHearing(isHeard: boolean): void {
    silentSince = isHeard ? null : (silentSince ?? performance.now());
    if (isHeard) backOff.reset();
  }
  async function read(): Promise<void> {
    const batches = log.follow({
      subjects: filters.all,
      after: newest.end(),
      signal,
      onHearing,
      onMalformed(poison) {
        poisons.push(poison);
        // Its batch, where there is one, comes before anything else does.
        if (poisons.length === 1) setImmediate(keepAlone);
      },
    });
    for await (const batch of batches) {
      keep(batch);
      onHearing(true);
    }
    if (!signal.aborted) throw new Error('the reader ended by itself');
  }
  async function readOn(): Promise<void> {
    while (!signal.aborted) {
      try {
        await read();
      } catch (error) {
        // What is not kept yet is read again.
        poisons = [];
        onHearing(false);
        onFailure(error, 'the event log is not heard by this process; trying again');
        await backOff.pause(signal);
      }
    }
  }
  const isHearing = () => silentSince === null || performance.now() - silentSince < deafAfterMs;
  return { isHearing, ended: readOn().finally(() => bell.ring()) };
}

type OnFailure = NonNullable<OneReaderOptions['onFailure']>;

/**
 * Yields what is older than what is kept; returns the place from which on the rest is.
 * @param kept what comes behind it is kept, unless so much comes meanwhile that it is not any more
 */
async function* catchUp(
  log: EventLog,
  options: FollowOptions,
  after: number,
  kept: number,
  onFailure: OnFailure,
): AsyncGenerator<RecordedEvent[], number, void> {
  const target = await endOf(log, options.signal, onFailure, options.subjects);
  if (target === null) return after;
  if (after >= target) return Math.max(after, kept);
  const isThere = new AbortController();
  const signal = AbortSignal.any([options.signal, isThere.signal]);
  const backOff = createBackOff();
  let place = after;
  /** Up to here what cannot be read was told; `refused`: by what its listener would not have it. */
  let told = after;
  let refused: { error: unknown } | null = null;
  const onMalformed: FollowOptions['onMalformed'] = (poison) => {
    if (poison.sequence <= told) return;
    told = poison.sequence;
    try {
      options.onMalformed(poison);
    } catch (error) {
      refused = { error };
      throw error;
    }
    // No batch will end here: the last one that was to come cannot be read.
    if (told >= target) isThere.abort();
  };
  while (!signal.aborted) {
    try {
      for await (const batch of log.follow({ ...options, after: place, signal, onMalformed })) {
        place = Math.max(place, batch.at(-1)?.sequence ?? 0);
        backOff.reset();
        yield batch;
        if (place >= target) return place;
      }
    } catch (error) {
      if (refused !== null) throw (refused as { error: unknown }).error;
      onFailure(error, 'an older part of the event log is not read; trying again');
      await backOff.pause(signal);
    }
  }
  return Math.max(place, told);
}

/** How far the subjects go by now, however often that has to be asked; null: the signal aborted. */
async function endOf(
  log: EventLog,
  signal: AbortSignal,
  onFailure: OnFailure,
  subjects?: readonly string[],
): Promise<number | null> {
  const backOff = createBackOff();
  while (!signal.aborted) {
    try {
      return await log.lastSequence(subjects);
    } catch (error) {
      if (error instanceof Unavailable) {
        await pause(AWAY_MS, undefined, { signal }).catch(() => undefined);
      } else {
        onFailure(error, 'the event log does not say how far it goes; trying again');
        await backOff.pause(signal);
      }
    }
  }
  return null;
}

import type { RecordingSegment } from '#events/session/recording.ts';
import { createNotifier } from '#src/kernel/async/notifier.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { SessionIdentity } from '#src/kernel/domain/session/session.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import { parseSegmentKey, recordingPrefix, segmentKey } from '#src/features/recordings/keys.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { createJournal, iso, type Gap, type Journal, type JournalOptions } from './journal.ts';
import type { FinishedSegment } from './segment-writer.ts';

/** Bytes of a server's finished segments that wait to be stored, of all its sessions. */
export type Budget = { usedBytes: number; readonly maxBytes: number };

export type UploadsOptions = Omit<JournalOptions, 'reportEveryMs'> & {
  objects: Pick<ObjectStore, 'put' | 'list' | 'remove'>;
  /** Whether a segment is being written. */
  isWriting: () => boolean;
  budget: Budget;
  log: Pick<Logger, 'warn'>;
  reportEveryMs?: number;
  retryMs?: number;
};

/**
 * Stores the finished segments of one recording, one after the other, and reports them once a
 * minute. Its queue is bounded: the recorder asks whether it is full.
 */
export type Uploads = {
  /** Bytes of all segments, those that wait included. */
  readonly bytes: number;
  readonly isFull: boolean;
  /** Takes a segment; call it while it is not full. */
  add(segment: FinishedSegment): void;
  gap(gap: Gap): void;
  /** Resolves once it is not full, or the signal aborts. */
  room(signal: AbortSignal): Promise<void>;
  /** Whether a segment was lost since the last call: the next one must be whole. */
  takeLoss(): boolean;
  /**
   * Stores and reports what waits; nothing is added any more.
   * @param isLeaving true: another process goes on, so the time until now is reported in any case
   */
  finish(isLeaving: boolean): Promise<void>;
};

const SEGMENTS_WAITING_MAX = 6;
const REPORT_EVERY_MS = 60_000;
/** A segment that is not stored by then, its second and third try included, is a gap. */
const PUT_WITHIN_MS = 10_000;
const TRIES = 3;
const RETRY_MS = 1_000;

/** @param signal ends it without waiting for anything */
export function startUploads(given: UploadsOptions, signal: AbortSignal): Uploads {
  const options = { reportEveryMs: REPORT_EVERY_MS, retryMs: RETRY_MS, ...given };
  const { budget, now, log } = options;
  const journal = createJournal(options);
  const state: State = { journal, bytes: given.before?.bytes ?? 0, lost: null, isLossNews: false };
  const queue: FinishedSegment[] = [];
  const changes = createNotifier();
  let ending: 'end' | 'leave' | null = null;
  const isFull = () => queue.length >= SEGMENTS_WAITING_MAX || budget.usedBytes >= budget.maxBytes;
  // While nothing is under way, nothing has changed since the last segment.
  const report = () =>
    journal.report(queue.length === 0 && state.lost === null && !options.isWriting());

  async function run(): Promise<void> {
    await recover(options, state, signal);
    while (!signal.aborted) {
      const next = queue[0];
      if (next !== undefined) {
        await storeNext(options, state, next, signal);
        queue.shift();
        budget.usedBytes -= next.bytes.length;
        changes.notify();
      } else if (ending !== null) break;
      else await changes.wait(signal, journal.dueInMs);
      if (journal.isDue && !(await report())) return;
    }
    if (signal.aborted) return;
    if (state.lost !== null) journal.note({ ...state.lost, until: now(), reason: 'store_failed' });
    state.lost = null;
    let mustReport = journal.isPending || ending === 'leave';
    while (mustReport) mustReport = (await report()) && journal.isPending;
  }
  const running = run().catch((error: unknown) => {
    log.warn(
      { err: error, ...about(given.identity) },
      'the recording of a session has ended early',
    );
  });

  return {
    get bytes() {
      return state.bytes;
    },
    get isFull() {
      return isFull();
    },
    add(segment) {
      queue.push(segment);
      state.bytes += segment.bytes.length;
      budget.usedBytes += segment.bytes.length;
      changes.notify();
    },
    gap(gap) {
      journal.note(gap);
      changes.notify();
    },
    async room(until) {
      while (isFull() && !until.aborted) await changes.wait(until, options.retryMs);
    },
    takeLoss() {
      const isNews = state.isLossNews;
      state.isLossNews = false;
      return isNews;
    },
    async finish(isLeaving) {
      ending = isLeaving ? 'leave' : 'end';
      changes.notify();
      await running;
      // What an abort left.
      for (const { bytes } of queue.splice(0)) budget.usedBytes -= bytes.length;
    },
  };
}

type State = {
  readonly journal: Journal;
  bytes: number;
  /** What was lost last: it ends with the next whole segment. */
  lost: { from: number } | null;
  isLossNews: boolean;
};
type Options = UploadsOptions & { retryMs: number };

/** Takes over the segments that an earlier process stored and did not report any more. */
async function recover(options: Options, state: State, signal: AbortSignal): Promise<void> {
  const { identity, objects, log, retryMs } = options;
  const { journal } = state;
  while (!signal.aborted) {
    try {
      for await (const { key, sha256, bytes } of objects.list(recordingPrefix(identity))) {
        const named = parseSegmentKey(key);
        if (named === null || named.number !== journal.number + 1) continue;
        state.bytes += bytes;
        const { number, full } = named;
        const [startedAt, endedAt] = [iso(named.startedAt), iso(named.endedAt)];
        journal.keep({ number, startedAt, endedAt, full, bytes, sha256 }, true);
        if (journal.isDue) await journal.report(false);
      }
      return;
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ err: error, ...about(identity) }, 'failed to list the segments of a recording');
      await sleep(retryMs, signal);
    }
  }
}

async function storeNext(
  options: Options,
  state: State,
  segment: FinishedSegment,
  signal: AbortSignal,
): Promise<void> {
  // What follows a lost segment cannot be shown before the next whole screen.
  const isUseless = state.lost !== null && !segment.full;
  const number = state.journal.number + 1;
  const stored = isUseless ? null : await store(options, segment, number, signal);
  if (signal.aborted) return;
  if (stored === null) {
    state.bytes -= segment.bytes.length;
    state.lost ??= { from: segment.startedAt };
    state.isLossNews = true;
    return;
  }
  if (state.lost !== null)
    state.journal.note({ ...state.lost, until: segment.startedAt, reason: 'store_failed' });
  state.lost = null;
  state.journal.keep(stored);
}

/** @returns null: it could not be stored */
async function store(
  { identity, objects, log, retryMs }: Options,
  { startedAt, endedAt, full, bytes }: FinishedSegment,
  number: number,
  signal: AbortSignal,
): Promise<RecordingSegment | null> {
  const key = segmentKey(identity, { number, startedAt, endedAt, full });
  const late = AbortSignal.any([signal, AbortSignal.timeout(PUT_WITHIN_MS)]);
  for (let tries = 1; ; tries += 1) {
    try {
      const object = await objects.put(key, once(bytes), { signal: late, bytes: bytes.length });
      const at = { startedAt: iso(startedAt), endedAt: iso(endedAt) };
      return { number, ...at, full, bytes: object.bytes, sha256: object.sha256 };
    } catch (error) {
      if (signal.aborted) return null;
      if (tries < TRIES && !late.aborted) {
        await sleep(tries * retryMs, late);
        continue;
      }
      log.warn({ err: error, ...about(identity) }, 'a segment of a recording was not stored');
      // It may be there all the same: it must not count as the next one.
      await objects.remove(key).catch(() => undefined);
      return null;
    }
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield bytes;
}

function about({ organizationId, id }: SessionIdentity) {
  return { organizationId, sessionId: id };
}

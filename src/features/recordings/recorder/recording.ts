import { createBackOff } from '#src/kernel/async/back-off.ts';
import type { RecordingGapReason } from '#events/session/recording.ts';
import { createNotifier, type Notifier } from '#src/kernel/async/notifier.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Screen } from './screen.ts';
import { createSegments, type Segments } from './segments.ts';
import type { ScreenUpdate } from './update-reader.ts';
import type { Uploads } from './uploads.ts';

export type RecordingOptions = {
  /** Connects to the screen; the connection ends with the signal. */
  open: (signal: AbortSignal) => Promise<Screen>;
  /** Starts the uploads; what it is given tells whether a segment is not finished. */
  uploads: (isWriting: () => boolean) => Uploads;
  /** Set where an earlier process recorded before: until when. Epoch milliseconds. */
  goesOnFrom: number | null;
  /** It begins with a pause. */
  isPaused: boolean;
  /** Bytes at which the recording ends. */
  maxBytes: number;
  log: Pick<Logger, 'warn' | 'info'>;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** For tests; see the constants. */
  times?: Partial<typeof TIMES>;
};

/** The recording of one session's screen, until it is finished. */
export type Recording = {
  /**
   * Ends it: what was recorded is stored and reported. @param isLeaving another process goes on
   */
  finish(isLeaving: boolean): Promise<void>;
  /** Records nothing until it goes on: a gap `handoff`. */
  pause(): void;
  goOn(): void;
};

const TIMES = {
  segmentMs: 5_000,
  /** The pause between two updates: at most ten a second. */
  updateMs: 100,
  /** The pause before another try to reach the screen; doubled up to the longest. */
  reconnectMs: 500,
  reconnectMaxMs: 10_000,
  wholeEveryMs: 60_000,
};
/** Bytes of the screen's messages a second, on average: beyond that updates are rarer. */
const MESSAGE_BYTES_A_SECOND = 8 * 1024 * 1024;
/** Answers in a row that are not the whole screen that was asked for. */
const PARTS_MAX = 10;

export function startRecording(options: RecordingOptions): Recording {
  const { log, now } = options;
  const stop = new AbortController();
  const times = { ...TIMES, ...options.times };
  const segments = createSegments({
    ...times,
    now,
    finished: (segment) => uploads.add(segment),
    onError: (error) => log.warn({ err: error }, 'a segment of a recording was lost'),
  });
  const uploads: Uploads = options.uploads(() => segments.isWriting);
  const run: Run = {
    options,
    times,
    segments,
    uploads,
    signal: stop.signal,
    needsWhole: true,
    isOver: false,
    gap: options.goesOnFrom === null ? null : { from: options.goesOnFrom, reason: 'restart' },
    pause: options.isPaused ? { from: now(), isOver: false } : null,
    pauseEnded: createNotifier(),
  };
  const running = record(run);
  return {
    async finish(isLeaving) {
      stop.abort();
      await running;
      segments.close();
      await segments.settled();
      if (run.pause !== null) openGap(run, 'handoff', run.pause.from);
      if (run.gap !== null && !run.isOver) uploads.gap({ ...run.gap, until: now() });
      await uploads.finish(isLeaving);
    },
    pause() {
      run.pause = { from: run.pause?.from ?? now(), isOver: false };
    },
    goOn() {
      if (run.pause !== null) run.pause.isOver = true;
      run.pauseEnded.notify();
    },
  };
}

/** A recording under way. */
type Run = {
  readonly options: RecordingOptions;
  readonly times: typeof TIMES;
  readonly segments: Segments;
  readonly uploads: Uploads;
  readonly signal: AbortSignal;
  /** What has changed is of no use before the whole screen. */
  needsWhole: boolean;
  /** Its greatest size is reached. */
  isOver: boolean;
  /** A gap that has not ended. */
  gap: { from: number; reason: RecordingGapReason } | null;
  /** A pause that the loop has not passed; what the screen sends meanwhile is dropped. */
  pause: { from: number; isOver: boolean } | null;
  readonly pauseEnded: Notifier;
};

/** Records until the signal aborts or it is over; connects again where the screen is lost. */
async function record(run: Run): Promise<void> {
  const { times, signal } = run;
  const { open, log } = run.options;
  const backOff = createBackOff(times.reconnectMs, times.reconnectMaxMs);
  while (!signal.aborted && !run.isOver) {
    try {
      using screen = await open(signal);
      backOff.reset();
      await follow(run, screen);
    } catch (error) {
      if (signal.aborted) return;
      if (run.gap === null) log.warn({ err: error }, 'the screen of a session cannot be recorded');
      openGap(run, 'screen_lost');
      await backOff.pause(signal);
    }
  }
}

/** @throws Error: the screen is lost */
async function follow(run: Run, screen: Screen): Promise<void> {
  const { segments, times, signal } = run;
  let parts = 0;
  while (!signal.aborted) {
    if (!(await isReady(run))) return;
    const update = await screen.update(run.needsWhole ? 'all' : 'changes');
    if (run.pause !== null) continue;
    if (update.size !== null) restart(run);
    const isWhole = update.pixels > 0 && update.pixels >= screen.width * screen.height;
    // What has changed comes again with the whole screen that begins the next segment.
    if (!segments.isOpen && segments.isWholeDue) run.needsWhole = true;
    if (isWhole || !run.needsWhole) {
      parts = 0;
      await append(run, screen, update, isWhole);
    } else {
      parts += 1;
      if (parts > PARTS_MAX) throw new Error('the screen is never sent as a whole');
      if (parts === 1) continue;
    }
    const share = update.bytes.length / MESSAGE_BYTES_A_SECOND;
    await sleep(Math.max(times.updateMs, share * 1_000), signal);
  }
}

/** Waits until a segment may be added. @returns false: the recording is over */
async function isReady(run: Run): Promise<boolean> {
  const { segments, uploads, signal } = run;
  const { maxBytes, now, log } = run.options;
  while (run.pause !== null && !signal.aborted) {
    openGap(run, 'handoff', run.pause.from);
    if (run.pause.isOver) run.pause = null;
    else await run.pauseEnded.wait(signal);
  }
  if (uploads.bytes + segments.length >= maxBytes) {
    segments.close();
    run.isOver = true;
    uploads.gap({ from: now(), reason: 'limit' });
    return false;
  }
  if (uploads.isFull) {
    openGap(run, 'slow_store');
    log.warn({}, 'the object store is too slow for a recording: there will be a gap');
    await uploads.room(signal);
  }
  if (uploads.takeLoss()) restart(run);
  return !signal.aborted;
}

/** The next segment begins with the whole screen. */
function restart(run: Run): void {
  run.segments.close();
  run.needsWhole = true;
}

function openGap(run: Run, reason: RecordingGapReason, from = run.options.now()): void {
  restart(run);
  run.gap ??= { from, reason };
}

async function append(run: Run, screen: Screen, { bytes }: ScreenUpdate, full: boolean) {
  const at = run.options.now();
  if (run.gap !== null) run.uploads.gap({ ...run.gap, until: at });
  run.gap = null;
  if (full) run.needsWhole = false;
  const { width, height } = screen;
  await run.segments.append({ width, height, full, startedAt: at }, bytes);
}

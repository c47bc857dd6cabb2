import {
  recordingBatchMax,
  type Recording,
  type RecordingGap,
  type RecordingGapReason,
  type RecordingSegment,
} from '#events/session/recording.ts';
import type { StoreRecording } from '#src/kernel/domain/session/commands.ts';
import type { SessionIdentity } from '#src/kernel/domain/session/session.ts';
import { firstLink, nextLink } from '#src/features/recordings/chain.ts';

/** Times are milliseconds since the epoch; without `until` the recording is over. */
export type Gap = { from: number; until?: number; reason: RecordingGapReason };

export type JournalOptions = {
  identity: SessionIdentity;
  /** How far the recording is; undefined: nothing is stored. */
  before: Recording | undefined;
  /** Appends the report. @returns false: this process is not in charge of the session any more */
  report: (command: StoreRecording) => Promise<boolean>;
  now: () => number;
  reportEveryMs: number;
};

/** What is stored of a recording, and not reported yet. */
export type Journal = {
  /** Of the last segment; 0: there is none. */
  readonly number: number;
  readonly isPending: boolean;
  /** A report is due: after a minute, or when it is full. */
  readonly isDue: boolean;
  /** Until a report is due; undefined: nothing is pending. */
  readonly dueInMs: number | undefined;
  /** @param isRecovered an earlier process stored it, and did not report it */
  keep(segment: RecordingSegment, isRecovered?: boolean): void;
  note(gap: Gap): void;
  /**
   * Reports what is pending. @param isComplete all until now is stored
   * @returns false: another process is in charge
   */
  report(isComplete: boolean): Promise<boolean>;
};

export function createJournal(options: JournalOptions): Journal {
  const { identity, before, now, reportEveryMs } = options;
  const stored: RecordingSegment[] = [];
  const gaps: RecordingGap[] = [];
  let chain = before?.chain ?? firstLink(identity);
  let number = before?.segments ?? 0;
  let until = before?.until ?? null;
  let recoveredUntil = '';
  let pendingSince: number | null = null;

  /** What an earlier process stored is no gap. */
  function afterRecovered(gap: RecordingGap): RecordingGap {
    const isEarlier = gap.reason === 'restart' && gap.from < recoveredUntil;
    return isEarlier ? { ...gap, from: recoveredUntil } : gap;
  }
  function isDue(): boolean {
    if (pendingSince === null) return false;
    const isOver = gaps.some(({ until: end }) => end === undefined);
    const isFull = stored.length >= recordingBatchMax || gaps.length >= recordingBatchMax;
    return isOver || isFull || now() >= pendingSince + reportEveryMs;
  }
  return {
    get number() {
      return number;
    },
    get isPending() {
      return pendingSince !== null;
    },
    get isDue() {
      return isDue();
    },
    get dueInMs() {
      return pendingSince === null ? undefined : Math.max(1, pendingSince + reportEveryMs - now());
    },
    keep(segment, isRecovered = false) {
      number = segment.number;
      chain = nextLink(chain, segment.sha256);
      until = segment.endedAt;
      if (isRecovered) recoveredUntil = segment.endedAt;
      stored.push(segment);
      pendingSince ??= now();
    },
    note({ from, until: end, reason }) {
      gaps.push({ from: iso(from), ...(end !== undefined && { until: iso(end) }), reason });
      pendingSince ??= now();
    },
    async report(isComplete) {
      const command: StoreRecording = {
        type: 'StoreRecording',
        segments: stored.splice(0, recordingBatchMax),
        gaps: gaps.splice(0, recordingBatchMax).map(afterRecovered),
        chain,
        until: isComplete || until === null ? iso(now()) : until,
      };
      pendingSince = stored.length + gaps.length === 0 ? null : now();
      return options.report(command);
    },
  };
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

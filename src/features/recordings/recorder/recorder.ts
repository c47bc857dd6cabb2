import type { SessionState } from '#events/session.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { within } from '#src/kernel/async/timeout.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import type { Reporter } from '#src/commands/reporter.ts';
import { startRecording, type Recording, type RecordingOptions } from './recording.ts';
import { openScreen, type OpenScreen } from './screen.ts';
import { startUploads, type Budget, type Uploads, type UploadsOptions } from './uploads.ts';

export type RecorderOptions = {
  objects: Pick<ObjectStore, 'put' | 'list' | 'remove'>;
  reporter: Pick<Reporter, 'session'>;
  vncPasswordOf: (workloadId: string) => string;
  log: Pick<Logger, 'warn' | 'info'>;
  now: () => number;
  /** Bytes of one session's recording. */
  maxBytes: number;
  open?: OpenScreen;
  /** Bytes of finished segments that wait, of all sessions of this server. */
  waitingBytesMax?: number;
  /** For tests; see recording.ts and uploads.ts. */
  times?: RecordingOptions['times'] &
    Pick<UploadsOptions, 'reportEveryMs' | 'retryMs'> & { finishWithinMs?: number };
};

/** Records the screens of this server's sessions that are to be recorded. */
export type Recorder = {
  /**
   * Begins, or goes on after an earlier process; nothing for a session without `record`.
   * @param isAdopted an earlier process recorded until now
   */
  start(browser: RunningBrowser, session: SessionState, isAdopted: boolean): void;
  /**
   * Pauses while a person has the session: a hand-off is for what its program must not see, such as
   * a password, and all who may read the session may read its recording.
   */
  follow(session: SessionState): void;
  /**
   * Ends the recording of a browser's session. Resolves once it is stored and reported, or after
   * two seconds: what is not stored by then is lost, and the session's end does not wait for it.
   * @param isLeaving another process goes on with the session
   */
  finish(workloadId: string, isLeaving?: boolean): Promise<void>;
  /** Ends all recordings: another process goes on with their sessions. */
  leave(): Promise<void>;
};

const ACTOR = 'provisioner/recorder';
const FINISH_WITHIN_MS = 2_000;
const WAITING_BYTES_MAX = 64 * 1024 * 1024;

type Running = Recording & { giveUp: () => void };

export function createRecorder(options: RecorderOptions): Recorder {
  const { objects, reporter, vncPasswordOf, log, now, maxBytes, open = openScreen } = options;
  const { times = {} } = options;
  const budget: Budget = {
    usedBytes: 0,
    maxBytes: options.waitingBytesMax ?? WAITING_BYTES_MAX,
  };
  const recordings = new Map<string, Running>();

  function begin(browser: RunningBrowser, session: SessionState, isAdopted: boolean): Running {
    const { organizationId, id, recording: before } = session;
    const identity = { organizationId, id };
    const givenUp = new AbortController();
    const uploads = (isWriting: () => boolean): Uploads =>
      startUploads(
        {
          identity,
          before,
          objects,
          budget,
          log,
          now,
          isWriting,
          ...times,
          async report(command) {
            const said = await reporter.session(identity, command, newMetadata(ACTOR));
            if (isRejection(said)) return false;
            const last = command.segments.at(-1);
            return last === undefined || said.state.recording?.segments === last.number;
          },
        },
        givenUp.signal,
      );
    const recording = startRecording({
      uploads,
      maxBytes,
      log,
      now,
      times,
      open: (signal) => open(browser.vnc, vncPasswordOf(browser.workloadId), signal),
      isPaused: isHandedOff(session),
      goesOnFrom: isAdopted ? Date.parse(before?.until ?? session.startedAt ?? '') : null,
    });
    return { ...recording, giveUp: () => givenUp.abort() };
  }

  async function finish(workloadId: string, isLeaving = false): Promise<void> {
    const running = recordings.get(workloadId);
    if (running === undefined) return;
    recordings.delete(workloadId);
    const ended = running.finish(isLeaving).catch((error: unknown) => {
      log.warn({ err: error, workloadId }, 'failed to end a recording');
    });
    await within(times.finishWithinMs ?? FINISH_WITHIN_MS, ended, () => {
      running.giveUp();
      log.warn({ workloadId }, 'the end of a recording was not stored in time');
    });
  }

  return {
    start(browser, session, isAdopted) {
      if (session.record !== true || session.recording?.isOver === true) return;
      if (recordings.has(browser.workloadId)) return;
      recordings.set(browser.workloadId, begin(browser, session, isAdopted));
    },
    follow: (session) => follow(recordings.get(session.workload?.workloadId ?? ''), session),
    finish,
    async leave() {
      await Promise.all([...recordings.keys()].map((workloadId) => finish(workloadId, true)));
    },
  };
}

function follow(recording: Recording | undefined, session: SessionState): void {
  if (isHandedOff(session)) recording?.pause();
  else recording?.goOn();
}

function isHandedOff({ handoff }: SessionState): boolean {
  return handoff?.status === 'taken';
}

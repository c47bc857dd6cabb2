import { within } from '#src/kernel/async/timeout.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadFiles } from '#src/kernel/event-store/load-files.ts';
import {
  WORKING_MS,
  type FileAnswer,
  type FileQuestion,
} from '#src/kernel/messaging/session-files.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { ObserverPart } from '#src/browsers/observer/part.ts';
import type { Reporter } from '#src/commands/reporter.ts';
import type { ServedBrowsers } from '#src/browsers/served-browsers.ts';
import { createAnswers } from './answers.ts';
import { createDownloadControls } from './download-controls.ts';
import { createDownloads, type Downloads } from './downloads.ts';
import { observeDownloads } from './observe-downloads.ts';
import { SessionFileStore, type FileStoreDependencies } from './session-file-store.ts';

/** The files of the sessions of one server. */
export type SessionFilesOfServer = {
  /** Has the downloads of each browser land in its folder, and follows them. */
  part: ObserverPart;
  /** From now on it knows which session a browser serves. */
  start(browsers: ServedBrowsers, reporter: Pick<Reporter, 'session'>): void;
  /** Answers questions about the files of the sessions that run here. */
  answer: (question: FileQuestion) => Promise<FileAnswer>;
  /**
   * Ends the files of a browser that ends: waits a while for what is complete to be stored, and
   * records what is lost. Never rejects.
   */
  end(workloadId: string): Promise<void>;
  /**
   * Ends the files of all browsers, which go on with another process, within 3 s. From then on no
   * download is followed, and one that begins is cancelled. Never rejects.
   */
  leave(): Promise<void>;
};

export type SessionFilesOptions = Omit<FileStoreDependencies, 'reporter'> & {
  eventStore: Pick<EventStore, 'history'>;
  log: Pick<Logger, 'warn' | 'debug'>;
  /** How long the end of a browser waits for its files; 5 s by default. */
  endWithinMs?: number;
};

/**
 * How long an end waits: for copies, then until the event store has what is lost. A stop is not
 * held up for longer; the slot of the session is taken until then.
 */
type EndBounds = { copiesMs: number; lostMs: number };
const END: EndBounds = { copiesMs: 5_000, lostMs: 2_000 };
/** A restart has some seconds for all that it leaves. */
const LEAVE: EndBounds = { copiesMs: 2_000, lostMs: 1_000 };

/** One browser's session and its files. */
type Opened = Pick<SessionFilesOfServer, 'answer'> & {
  fileStore: SessionFileStore;
  downloads: Downloads;
};

export function createSessionFiles(options: SessionFilesOptions): SessionFilesOfServer {
  const { eventStore, log, endWithinMs = END.copiesMs } = options;
  const opened = new Map<string, Opened>();
  const controls = createDownloadControls(log);
  let started: { browsers: ServedBrowsers; reporter: Pick<Reporter, 'session'> } | null = null;

  /** The files of the session that a browser serves; null: it serves none (any more). */
  function open(workloadId: string): Opened | null {
    const known = opened.get(workloadId);
    if (known !== undefined) return known;
    const { session = null, phase } = started?.browsers.get(workloadId) ?? {};
    if (started === null || session === null || phase !== 'busy') return null;
    const parts = { ...options, reporter: started.reporter };
    const load = () => loadFiles(eventStore, session);
    const fileStore = new SessionFileStore(parts, workloadId, session, load);
    // Its downloads are checked against them as soon as they are known.
    fileStore.known().catch(warn(workloadId, 'failed to read the files of a session'));
    const downloads = createDownloads(fileStore, (guid) => controls.cancel(workloadId, guid));
    const answer = createAnswers(fileStore);
    opened.set(workloadId, { fileStore, answer, downloads });
    return { fileStore, answer, downloads };
  }
  function warn(workloadId: string, what: string) {
    return (error: unknown) => log.warn({ err: error, workloadId }, what);
  }

  async function end(workloadId: string, { copiesMs, lostMs }: EndBounds): Promise<void> {
    const ending = opened.get(workloadId);
    if (ending === undefined) return;
    const { fileStore, downloads } = ending;
    await within(copiesMs, fileStore.idle(), () => undefined);
    fileStore.end();
    // What begins after this would be in no record.
    opened.delete(workloadId);
    const lost = fileStore.idle().then(() => downloads.end());
    const ended = lost.catch(warn(workloadId, 'failed to end the files of a session'));
    await within(lostMs, ended, () => undefined);
  }

  return {
    part: {
      name: 'downloads',
      pages: { attached: (page) => controls.pageAttached(page) },
      attached(browser) {
        const { workloadId } = browser;
        controls.attached(browser);
        return observeDownloads(browser, {
          begin(told) {
            const { downloads } = open(workloadId) ?? {};
            // Nothing would follow it to its end.
            if (downloads === undefined) return controls.cancel(workloadId, told.guid);
            // Now: by the time that it is refused, the page may show another site.
            downloads.begin(told, controls.consoleOf(workloadId, told.frameId));
          },
          progress(told) {
            const followed = opened.get(workloadId)?.downloads.progress(told);
            followed?.catch(warn(workloadId, 'a download was not stored'));
          },
        });
      },
    },
    start: (browsers, reporter) => void (started = { browsers, reporter }),
    async answer(question) {
      const { organizationId, sessionId, workloadId } = question;
      const { session = null, phase } = started?.browsers.get(workloadId) ?? {};
      const isHere =
        phase === 'busy' && session?.id === sessionId && session.organizationId === organizationId;
      const asked = isHere ? open(workloadId) : null;
      return asked === null ? { kind: 'not-here' } : answerOnceKnown(asked, question);
    },
    end: (workloadId) => end(workloadId, { ...END, copiesMs: endWithinMs }),
    async leave() {
      started = null;
      await Promise.all([...opened.keys()].map((workloadId) => end(workloadId, LEAVE)));
    },
  };
}

/** An outage that keeps the session's files unknown for longer fails the question. */
async function answerOnceKnown(
  { fileStore, answer }: Opened,
  question: FileQuestion,
): Promise<FileAnswer> {
  const known = fileStore.known().then(() => true);
  return (await within(WORKING_MS, known, () => false)) ? answer(question) : { kind: 'failed' };
}

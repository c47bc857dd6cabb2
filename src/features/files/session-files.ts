import { within } from '#src/kernel/async/timeout.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadFiles } from '#src/kernel/event-store/load-files.ts';
import type { FileAnswer, FileQuestion } from '#src/kernel/messaging/session-files.ts';
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
};

export type SessionFilesOptions = Omit<FileStoreDependencies, 'reporter'> & {
  eventStore: Pick<EventStore, 'history'>;
  log: Pick<Logger, 'warn' | 'debug'>;
  /** How long the end of a browser waits for its files; 5 s by default. */
  endWithinMs?: number;
};

/** A stop is not held up for longer; the slot of the session is taken until then. */
const END_WITHIN_MS = 5_000;
/** Recording what is lost waits for the event store no longer than this. */
const LOST_WITHIN_MS = 2_000;

/** One browser's session and its files. */
type Opened = Pick<SessionFilesOfServer, 'answer'> & {
  fileStore: SessionFileStore;
  downloads: Downloads;
};

export function createSessionFiles(options: SessionFilesOptions): SessionFilesOfServer {
  const { eventStore, log, endWithinMs = END_WITHIN_MS } = options;
  const opened = new Map<string, Promise<Opened>>();
  const controls = createDownloadControls(log);
  let started: { browsers: ServedBrowsers; reporter: Pick<Reporter, 'session'> } | null = null;

  /** The files of the session that a browser serves; null: it serves none (any more). */
  function open(workloadId: string): Promise<Opened> | null {
    const known = opened.get(workloadId);
    if (known !== undefined) return known;
    const { session = null, phase } = started?.browsers.get(workloadId) ?? {};
    if (started === null || session === null || phase !== 'busy') return null;
    const parts = { ...options, reporter: started.reporter };
    const opening = loadFiles(eventStore, session).then((files): Opened => {
      const fileStore = new SessionFileStore(parts, workloadId, session, files);
      const downloads = createDownloads(fileStore, (guid) => controls.cancel(workloadId, guid));
      return { fileStore, answer: createAnswers(fileStore), downloads };
    });
    opened.set(workloadId, opening);
    opening.catch(() => opened.delete(workloadId));
    return opening;
  }

  async function end(workloadId: string): Promise<void> {
    const opening = opened.get(workloadId);
    if (opening === undefined) return;
    try {
      const { fileStore, downloads } = await opening;
      await within(endWithinMs, fileStore.idle(), () => undefined);
      fileStore.end();
      const lost = fileStore.idle().then(() => downloads.end());
      await within(LOST_WITHIN_MS, lost, () => undefined);
    } catch (error) {
      log.warn({ err: error, workloadId }, 'failed to end the files of a session');
    } finally {
      opened.delete(workloadId);
    }
  }

  /** In the order of the events, although the first one has to wait for the files. */
  function follow(workloadId: string, handle: HandleDownloads): void {
    void open(workloadId)
      ?.then(({ downloads }) => handle(downloads))
      .catch((error: unknown) => log.warn({ err: error, workloadId }, 'a download was not stored'));
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
            // Now: until its session's files are known, the page may show another site.
            const writeToPage = controls.consoleOf(workloadId, told.frameId);
            follow(workloadId, (downloads) => downloads.begin(told, writeToPage));
          },
          progress: (told) => follow(workloadId, (downloads) => downloads.progress(told)),
        });
      },
    },
    start: (browsers, reporter) => void (started = { browsers, reporter }),
    async answer(question) {
      const { organizationId, sessionId, workloadId } = question;
      const { session = null, phase } = started?.browsers.get(workloadId) ?? {};
      const isHere =
        phase === 'busy' && session?.id === sessionId && session.organizationId === organizationId;
      const opening = isHere ? open(workloadId) : null;
      return opening === null ? { kind: 'not-here' } : (await opening).answer(question);
    },
    end,
  };
}

type HandleDownloads = (downloads: Downloads) => void | Promise<void>;

import type { FileContent } from './file-content.ts';
import { DownloadRefused } from './failures.ts';
import { followEvents } from './follow-events.ts';
import type { Requester, StreamOptions } from './requester.ts';

/**
 * The part of Playwright's Download that tells which one it is. Other clients have its guid and its
 * name, from `Browser.downloadWillBegin`.
 */
export type DownloadLike =
  | {
      suggestedFilename(): string;
      failure(): Promise<string | null>;
      path(): Promise<string | null>;
    }
  | { guid: string; suggestedFilename: string };

export type SaveOptions = StreamOptions & {
  /** Writes the file to this path; in Node alone. */
  to?: string;
  /** How long to wait for the file once the browser has it; default 2 minutes. */
  waitMs?: number;
};

type Session = {
  requester: Requester;
  /** Of the session in the API. */
  path: string;
  open(name: string, options: StreamOptions): Promise<FileContent>;
};

const WAIT_MS = 120_000;
/** A download that failed on its own has no refusal, or has one soon. */
const REFUSAL_MS = 15_000;

/** @see SessionFiles.saveDownload */
export async function saveDownload(
  session: Session,
  download: DownloadLike,
  { signal, to, waitMs = WAIT_MS }: SaveOptions = {},
): Promise<FileContent> {
  const asked = await identify(download);
  const late = AbortSignal.timeout(asked.failure === null ? waitMs : Math.min(waitMs, REFUSAL_MS));
  const either = signal === undefined ? late : AbortSignal.any([late, signal]);
  let name: string | null = null;
  try {
    name = await nameOf(session, asked, either);
  } catch (error) {
    if (!late.aborted || signal?.aborted === true) throw error;
  }
  if (name === null) throw new DownloadRefused(asked.suggested, asked.failure ?? 'unknown');
  const content = await session.open(name, signal === undefined ? {} : { signal });
  if (to !== undefined) await content.saveTo(to);
  return content;
}

/** What is known of a download that the browser has ended. */
type Asked = { guid: string | null; suggested: string; failure: string | null };

async function identify(download: DownloadLike): Promise<Asked> {
  if ('guid' in download)
    return { guid: download.guid, suggested: download.suggestedFilename, failure: null };
  const failure = await download.failure();
  const suggested = download.suggestedFilename();
  if (failure !== null) return { guid: null, suggested, failure };
  // Where Playwright believes it to be: the name of that file is the guid.
  const path = await download.path().catch(() => null);
  return { guid: path?.split(/[/\\]/).at(-1) ?? null, suggested, failure };
}

/**
 * The name that the download has among the session's files; null: the session ended without it.
 * @throws DownloadRefused
 */
async function nameOf(
  { requester, path }: Session,
  { guid, suggested, failure }: Asked,
  signal: AbortSignal,
): Promise<string | null> {
  const events = followEvents(
    requester,
    { path: `${path}/events`, isOneSession: true },
    {
      types: ['session.file-added', 'session.file-refused', 'session.stopped', 'session.failed'],
      signal,
      triesMax: Infinity,
    },
  );
  for await (const { type, data } of events) {
    if (type !== 'session.file-added' && type !== 'session.file-refused') continue;
    if (data.origin !== 'download') continue;
    const isIt = guid === null ? data.name === suggested : data.guid === guid;
    if (!isIt) continue;
    if (type === 'session.file-refused') throw new DownloadRefused(suggested, data.reason);
    if (failure === null) return data.name;
  }
  return null;
}

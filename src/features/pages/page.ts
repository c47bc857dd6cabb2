import { sleep } from '#src/kernel/async/sleep.ts';
import { within } from '#src/kernel/async/timeout.ts';
import { CdpRefusal } from '#src/browsers/link/cdp.ts';
import { readObject, textOf } from '#src/kernel/foreign/foreign-json.ts';
import type { ContentAsked } from './routes/page-call.ts';
import type { PageCdp } from './page-events.ts';
import { DocumentProgress } from './document-progress.ts';
import { DocumentResponses } from './document-responses.ts';
import {
  ABORTED,
  badField,
  navigationFailed,
  notOpened,
  pageCrashed,
  type PageFailure,
} from './page-failure.ts';
import { untilPdfsShown } from './pdf-viewer.ts';
import { answerPrompt, refusePrompts } from './prompts.ts';

/** What is to be known of a document beside its bytes. */
export type DocumentFacts = { url: string; title: string; status: number | null };

/** A document that has reached what was asked for, and the means to read it. */
export type ReadyDocument = {
  loaderId: string;
  /**
   * Evaluates an expression in a world of its own, which the page's scripts do not see or change.
   * @throws DocumentGone once the page has another document
   */
  evaluate: (expression: string) => Promise<unknown>;
};

/** The page has another document than before. */
export class DocumentGone extends Error {
  override readonly name = 'DocumentGone';
}

/** The browser's page of one call. */
export type Page = {
  /** A command to the page. @throws CdpRefusal, ConnectionLost, PageFailure if it crashes */
  send(method: string, params?: object): Promise<Record<string, unknown>>;
  /** @throws PageFailure NAVIGATION_FAILED, or as `send` */
  open(url: string): Promise<void>;
  /** The document, once it has reached what was asked for. @throws as `send` */
  untilReady(asked: ContentAsked): Promise<ReadyDocument>;
  /** Resolves once what the document has of PDFs is shown. @throws as `send` */
  untilPdfsShown(): Promise<void>;
  /** The bytes of the PDF at the address of the document; null: they were not kept. */
  pdfOf(url: string): Buffer | null;
  /** Whether the page still has the document: asked of the page itself. */
  isStill(document: ReadyDocument): Promise<boolean>;
};

const VIEWPORT_DEFAULT = { width: 1280, height: 800, scale: 1 };
/** Between two looks for an element. */
const LOOK_AGAIN_MS = 50;
const WORLD = 'one-call';
/** Chromium says the name of a download about as soon as that it is one. */
const NAMED_WITHIN_MS = 1_000;

type PageOptions = {
  viewport: ContentAsked['viewport'];
  /** For the error of a page that crashes. */
  url: string;
  /** What its pages are granted. */
  granted: readonly string[];
  /** Whether the bytes of a document that is a PDF are kept. */
  keepsPdf: boolean;
  signal: AbortSignal;
};

/** Takes the browser's blank page, or makes one, with a size of its own. */
export async function takePage(cdp: PageCdp, options: PageOptions): Promise<Page> {
  const targetId = await blankPage(cdp);
  const sessionId = await cdp.attach(targetId);
  // The main frame of a page has the id of its target.
  const progress = new DocumentProgress(targetId);
  const responses = new DocumentResponses(cdp, { mainFrame: targetId, keepsPdf: options.keepsPdf });
  const saved = Promise.withResolvers<string>();
  const crashed = Promise.withResolvers<never>();
  crashed.promise.catch(() => undefined);
  // Who waits for an event has no command that would say so.
  cdp.closed.catch(crashed.reject);
  const send: Page['send'] = (method, params) =>
    Promise.race([cdp.send(method, params, sessionId), crashed.promise]);
  cdp.onEvent((event) => {
    answerPrompt(cdp, event);
    if (event.method === 'Fetch.requestPaused') return void responses.take(event);
    if (event.sessionId !== sessionId) return;
    progress.take(event);
    if (event.method === 'Inspector.targetCrashed') crashed.reject(pageCrashed(options.url));
    if (event.method === 'Page.downloadWillBegin' && event.frameId === targetId)
      saved.resolve(event.fileName);
  });
  const { scale, ...size } = options.viewport ?? VIEWPORT_DEFAULT;
  const metrics = { ...size, deviceScaleFactor: scale ?? 1, mobile: false };
  await Promise.all([
    refusePrompts(cdp, options.granted),
    send('Page.enable'),
    send('Page.setLifecycleEventsEnabled', { enabled: true }),
    send('Emulation.setDeviceMetricsOverride', metrics),
    // They would take 15 pixels of the viewport, and be in the picture.
    send('Emulation.setScrollbarsHidden', { hidden: true }),
  ]);
  const parts = { cdp, send, progress, responses, saved: saved.promise };
  return pageOf({ ...parts, mainFrame: targetId, crashed: crashed.promise }, options);
}

/** A session that was not used yet has a blank page; one with a profile may have more. */
async function blankPage(cdp: PageCdp): Promise<string> {
  const { targetInfos } = await cdp.send('Target.getTargets');
  const targets = Array.isArray(targetInfos) ? targetInfos.map(readObject) : [];
  const blank = targets.find(({ type, url }) => type === 'page' && url === 'about:blank');
  if (blank !== undefined) return textOf(blank['targetId']);
  return textOf((await cdp.send('Target.createTarget', { url: 'about:blank' }))['targetId']);
}

type Parts = {
  cdp: PageCdp;
  responses: DocumentResponses;
  /** Resolves with the name of the file that the page saves in place of a document. */
  saved: Promise<string>;
  send: Page['send'];
  progress: DocumentProgress;
  mainFrame: string;
  crashed: Promise<never>;
};

function pageOf(parts: Parts, { signal, url: asked }: PageOptions): Page {
  const { cdp, send, progress, responses, saved, mainFrame, crashed } = parts;
  /** The blank page's document, which the opened one replaces. */
  let before: string | null = null;
  /** The page, or the address where it went in place of a document. */
  async function stopped(): Promise<PageFailure> {
    const fileName = await within(NAMED_WITHIN_MS, saved, () => null);
    const answer = fileName === null ? null : responses.last;
    return notOpened(answer?.url ?? asked, { reason: ABORTED, fileName, answer });
  }

  async function untilReady({ wait_until: milestone = 'load', ...wanted }: ContentAsked) {
    for (;;) {
      const reached = progress.until(milestone, { before, signal });
      const loaderId = await Promise.race([reached, crashed]);
      // It is never drawn.
      if (progress.isStopped) throw await stopped();
      try {
        const document = await documentOf(parts, loaderId);
        if (wanted.wait_for !== undefined)
          await untilThere(document, 'wait_for', wanted.wait_for, signal);
        if (wanted.delay_ms !== undefined)
          await Promise.race([sleep(wanted.delay_ms, signal), crashed]);
        signal.throwIfAborted();
        return document;
      } catch (error) {
        // The page went on to another document: that has to reach it all again.
        if (!(error instanceof DocumentGone)) throw error;
        progress.showsAgain(textOf((await frameOf(send))['loaderId']));
        await sleep(LOOK_AGAIN_MS, signal);
      }
    }
  }
  return {
    send,
    untilReady,
    async open(url) {
      before = textOf((await frameOf(send))['loaderId']);
      const navigated = await send('Page.navigate', { url, frameId: mainFrame });
      const { errorText, isDownload } = navigated;
      if (errorText === undefined) return;
      // So ends a navigation whose renderer died, too: the crash is said next, and a page without
      // a renderer does not answer.
      if (errorText === ABORTED) await frameOf(send);
      const isSaved = errorText === ABORTED && isDownload === true;
      const fileName = isSaved ? await within(NAMED_WITHIN_MS, saved, () => '') : null;
      throw notOpened(url, { reason: textOf(errorText), fileName, answer: responses.last });
    },
    untilPdfsShown: () => untilPdfsShown(cdp, send, signal),
    pdfOf: (url) => responses.pdfOf(url),
    async isStill({ loaderId, evaluate }) {
      try {
        // Its world is gone as soon as the document is.
        await evaluate('true');
      } catch (error) {
        if (error instanceof DocumentGone) return false;
        throw error;
      }
      const frame = await frameOf(send);
      return frame['loaderId'] === loaderId && progress.loaderId === loaderId;
    },
  };
}

async function frameOf(send: Page['send']): Promise<Record<string, unknown>> {
  const { frameTree } = await send('Page.getFrameTree');
  return readObject(readObject(frameTree)['frame']);
}

/** @throws DocumentGone if the page has another one, PageFailure if it is an error of Chromium */
async function documentOf(
  { send, mainFrame: frameId }: Parts,
  loaderId: string,
): Promise<ReadyDocument> {
  const world = await orGone(send('Page.createIsolatedWorld', { frameId, worldName: WORLD }));
  const frame = await frameOf(send);
  if (frame['loaderId'] !== loaderId) throw new DocumentGone();
  const { unreachableUrl } = frame;
  if (typeof unreachableUrl === 'string' && unreachableUrl !== '')
    throw navigationFailed(unreachableUrl, 'address_unreachable');
  const contextId = world['executionContextId'];
  return {
    loaderId,
    async evaluate(expression) {
      const asked = { expression, contextId, returnByValue: true };
      const { result, exceptionDetails } = await orGone(send('Runtime.evaluate', asked));
      if (exceptionDetails !== undefined)
        throw new CdpRefusal('an expression could not be evaluated in the page');
      return readObject(result)['value'];
    },
  };
}

/** A world ends with its document, and the browser refuses what is asked of it then. */
async function orGone<Result>(asked: Promise<Result>): Promise<Result> {
  try {
    return await asked;
  } catch (error) {
    throw error instanceof CdpRefusal ? new DocumentGone() : error;
  }
}

/**
 * Waits until an expression of the first element of a selector is there, as `element => …`.
 * @throws PageFailure INVALID_REQUEST if it is no selector, DocumentGone
 */
export async function untilThere(
  { evaluate }: ReadyDocument,
  field: string,
  selector: string,
  signal: AbortSignal,
  read = '() => true',
): Promise<unknown> {
  const expression = `(() => {
    let element;
    try { element = document.querySelector(${JSON.stringify(selector)}); } catch { return 'bad'; }
    return element === null ? null : (${read})(element);
  })()`;
  for (;;) {
    signal.throwIfAborted();
    const found = await evaluate(expression);
    if (found === 'bad') throw badField(field, 'is no CSS selector.');
    if (found !== null && found !== undefined) return found;
    await sleep(LOOK_AGAIN_MS, signal);
  }
}

import { sleep } from '#src/kernel/async/sleep.ts';
import { CdpRefusal } from '#src/browsers/link/cdp.ts';
import { readObject, textOf } from '#src/kernel/foreign/foreign-json.ts';
import { PDF } from './document-responses.ts';
import type { PageCdp } from './page-events.ts';

/** Chromium's own extension, which shows a PDF in a frame of its own below the document's. */
const VIEWER = 'chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/';
const LOOK_AGAIN_MS = 50;
/** PDFs in frames of one page that are waited for, and how long: a frame may never show its own. */
const FRAMES_MAX = 16;
const FRAMES_MS = 5_000;
/** Also of a PDF that cannot be read, or that asks for its password. */
const HAS_ENDED = `(() => {
  const viewer = document.querySelector('pdf-viewer');
  if (!viewer?.shadowRoot || viewer.loadState_ === undefined) return false;
  if (viewer.loadState_ !== 'loading') return true;
  return viewer.shadowRoot.querySelector('viewer-password-dialog') !== null;
})()`;

/**
 * Waits until the page's PDFs are shown: its document, or frames of it. A document is loaded long
 * before, when nothing can be seen yet.
 * @param send commands to the page
 */
export async function untilPdfsShown(
  cdp: PageCdp,
  send: (method: string) => Promise<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<void> {
  const sessions = new Map<string, string>();
  const shown = new Set<string>();
  const until = performance.now() + FRAMES_MS;
  for (;;) {
    const { frameTree } = await send('Page.getFrameTree');
    const tree = readObject(frameTree);
    const waits = performance.now() < until ? tree : { frame: tree['frame'] };
    const missing = pdfFrames(waits).filter((frame) => !shown.has(frame));
    if (missing.length === 0) return;
    for (const { targetId, frameId } of await viewersOf(cdp, missing)) {
      try {
        if (await hasEnded(cdp, targetId, sessions)) shown.add(frameId);
      } catch (error) {
        // The frame has gone, or shows another document.
        if (!(error instanceof CdpRefusal)) throw error;
        sessions.delete(targetId);
      }
    }
    await sleep(LOOK_AGAIN_MS, signal);
    signal.throwIfAborted();
  }
}

/** Level by level, however deep frames are nested. */
function pdfFrames(page: Record<string, unknown>): string[] {
  const found: string[] = [];
  const trees = [page];
  for (const { frame, childFrames } of trees) {
    const { id, mimeType } = readObject(frame);
    if (mimeType === PDF) found.push(textOf(id));
    if (found.length === FRAMES_MAX) break;
    if (Array.isArray(childFrames)) for (const child of childFrames) trees.push(readObject(child));
  }
  return found;
}

async function viewersOf(cdp: PageCdp, frames: readonly string[]) {
  const { targetInfos } = await cdp.send('Target.getTargets', { filter: [{}] });
  const targets = Array.isArray(targetInfos) ? targetInfos.map(readObject) : [];
  return targets.flatMap(({ url, targetId, parentFrameId }) =>
    typeof parentFrameId === 'string' &&
    frames.includes(parentFrameId) &&
    textOf(url).startsWith(VIEWER)
      ? [{ targetId: textOf(targetId), frameId: parentFrameId }]
      : [],
  );
}

async function hasEnded(
  cdp: PageCdp,
  targetId: string,
  sessions: Map<string, string>,
): Promise<boolean> {
  let sessionId = sessions.get(targetId);
  if (sessionId === undefined) {
    sessionId = await cdp.attach(targetId);
    sessions.set(targetId, sessionId);
  }
  const asked = { expression: HAS_ENDED, returnByValue: true };
  const { result } = await cdp.send('Runtime.evaluate', asked, sessionId);
  return readObject(result)['value'] === true;
}

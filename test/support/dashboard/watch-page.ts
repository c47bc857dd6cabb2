import type { Page } from 'playwright-core';

/** What a page costs the browser that shows it, measured in the page itself. */

export type Frames = {
  /** Milliseconds between frames. */
  gaps: number[];
  /** Tasks that took more than 50 ms. */
  longTasks: number[];
};

/** Runs in the page, as text: functions of this file are not known there. */
const WATCH = `(async ({ ms, isScrolling }) => {
  const longTasks = [];
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longTasks.push(duration);
  });
  observer.observe({ entryTypes: ['longtask'] });
  const scroller = document.querySelector('.scroller');
  const gaps = [];
  let step = 60;
  await new Promise((resolve) => {
    const begun = performance.now();
    let last = begun;
    requestAnimationFrame(function frame(now) {
      if (now > last) gaps.push(now - last);
      last = now;
      if (isScrolling) {
        const before = scroller.scrollTop;
        scroller.scrollTop += step;
        if (scroller.scrollTop === before) step = -step;
      }
      if (now - begun < ms) requestAnimationFrame(frame);
      else resolve();
    });
  });
  observer.disconnect();
  return { gaps: gaps.slice(1), longTasks };
})`;

/** The frames of the list while it scrolls by 60 pixels a frame, or is still. */
export function watchFrames(page: Page, ms: number, isScrolling: boolean): Promise<Frames> {
  return page.evaluate<Frames>(`${WATCH}(${JSON.stringify({ ms, isScrolling })})`);
}

/** Counts the object URLs of pages that are opened from now on. */
export async function countObjectUrls(page: Page): Promise<void> {
  await page.addInitScript(`{
    globalThis.objectUrls = new Set();
    const { createObjectURL, revokeObjectURL } = URL;
    URL.createObjectURL = (of) => {
      const url = createObjectURL.call(URL, of);
      globalThis.objectUrls.add(url);
      return url;
    };
    URL.revokeObjectURL = (url) => {
      globalThis.objectUrls.delete(url);
      revokeObjectURL.call(URL, url);
    };
  }`);
  await page.reload();
}

/** What the page holds after a full garbage collection. */
export type Held = {
  heapBytes: number;
  /** Nodes that live, in the document or detached from it. */
  nodes: number;
  /** Of these, those in the document. */
  attached: number;
  listeners: number;
  objectUrls: number;
};

export async function heldBy(page: Page): Promise<Held> {
  const session = await page.context().newCDPSession(page);
  try {
    // Twice: the objects freed first may have held others.
    await session.send('HeapProfiler.collectGarbage');
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize } = await session.send('Runtime.getHeapUsage');
    const { nodes, jsEventListeners } = await session.send('Memory.getDOMCounters');
    const walk = `(() => {
      const walker = document.createTreeWalker(document);
      let count = 1;
      while (walker.nextNode() !== null) count += 1;
      return count;
    })()`;
    return {
      heapBytes: usedSize,
      nodes,
      attached: await page.evaluate<number>(walk),
      listeners: jsEventListeners,
      objectUrls: await page.evaluate<number>('globalThis.objectUrls?.size ?? 0'),
    };
  } finally {
    await session.detach();
  }
}

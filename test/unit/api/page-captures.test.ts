import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { capturePage } from '#src/features/pages/captures.ts';
import type { PageCdp } from '#src/features/pages/page-events.ts';
import type { Page } from '#src/features/pages/page.ts';
import { untilPdfsShown } from '#src/features/pages/pdf-viewer.ts';

/** What a page says that never comes to rest, and one whose frames are nested without end. */

const clock = { ms: 0 };
vi.mock('#src/kernel/async/sleep.ts', () => ({
  sleep: async (ms: number) => void (clock.ms += ms),
}));
beforeEach(() => {
  clock.ms = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => clock.ms);
});
afterEach(() => vi.restoreAllMocks());

/** A page whose document has these facts; each picture is another one. */
function restless(type: string, isStill: () => boolean) {
  let pictures = 0;
  const evaluate = async () => ({ url: 'http://a/', title: '', status: 200, type, refusal: '' });
  const page: Page = {
    async send(method) {
      if (method !== 'Page.captureScreenshot') return {};
      pictures += 1;
      // A loop without a pause would not let the test go on.
      if (pictures > 1_000) throw new Error('a thousand pictures');
      return { data: Buffer.from(`picture ${pictures}`).toString('base64') };
    },
    open: async () => {},
    untilReady: async () => ({ loaderId: 'L', evaluate }),
    untilPdfsShown: async () => {},
    pdfOf: () => null,
    isStill: async () => isStill(),
  };
  return { page, pictures: () => pictures };
}
const asked = { kind: 'screenshot', body: { url: 'http://a/' } } as const;

describe('a picture', () => {
  it('of a page that goes on and on is tried again after a pause, until the time is up', async () => {
    const ending = new AbortController();
    const reason = new Error('the time is up');
    const { page, pictures } = restless('text/html', () => {
      if (clock.ms >= 1_000) ending.abort(reason);
      return false;
    });
    await expect(capturePage(page, asked, ending.signal)).rejects.toBe(reason);
    expect(pictures()).toBe(21);
  });

  it('of a PDF whose viewer never rests is the last one of five seconds', async () => {
    const { page, pictures } = restless('application/pdf', () => true);
    const { bytes } = await capturePage(page, asked, new AbortController().signal);
    expect([bytes.toString(), pictures()]).toEqual(['picture 101', 101]);
  });
});

describe('frames', () => {
  const frame = { id: 'F', mimeType: 'text/html' };

  it('may be nested as deep as they like', async () => {
    let frameTree: object = { frame };
    for (let depth = 0; depth < 100_000; depth += 1)
      frameTree = { frame, childFrames: [frameTree] };
    const send = async () => ({ frameTree });
    const cdp = { send } as unknown as PageCdp;
    await untilPdfsShown(cdp, send, new AbortController().signal);
  });

  it('with PDFs are waited for wherever they are', async () => {
    const pdf = { frame: { id: 'P', mimeType: 'application/pdf' } };
    let frameTree: object = { frame, childFrames: [{ frame, childFrames: [pdf] }] };
    let looks = 0;
    const send = async (method: string) => {
      if (method === 'Page.getFrameTree') return { frameTree };
      looks += 1;
      if (looks === 2) frameTree = { frame };
      return { targetInfos: [] };
    };
    const cdp = { send } as unknown as PageCdp;
    await untilPdfsShown(cdp, send, new AbortController().signal);
    expect(looks).toBe(2);
  });
});

import { expect, test } from 'vitest';
import { CdpRefusal, ConnectionLost } from '#src/browsers/link/cdp.ts';
import { DocumentProgress } from '#src/features/pages/document-progress.ts';
import { pageCrashed, rejectionOfBrowser } from '#src/features/pages/page-failure.ts';

const url = 'https://example.com/';

test('what the browser refuses has its own words, and is no dead browser', () => {
  const words = 'Page is already being printed';
  expect(rejectionOfBrowser(new CdpRefusal(words), url)).toMatchObject({
    code: 'PAGE_REFUSED',
    context: { url, reason: words },
    message: expect.stringContaining(words) as unknown,
  });
  const long = rejectionOfBrowser(new CdpRefusal(`${'x'.repeat(254)}😀`), url);
  expect(long?.context['reason']).toBe(`${'x'.repeat(254)}\ufffd`);
});

test('a browser that does not answer, or not as one, is unreachable; a bug stays one', () => {
  for (const error of [new ConnectionLost('1006'), new SyntaxError('no JSON')])
    expect(rejectionOfBrowser(error, url)).toMatchObject({ code: 'BROWSER_UNREACHABLE' });
  expect(rejectionOfBrowser(pageCrashed(url), url)).toMatchObject({ code: 'PAGE_CRASHED' });
  expect(rejectionOfBrowser(new TypeError('a bug'), url)).toBeNull();
});

test('a document that ends before it is whole is not waited for', async () => {
  const progress = new DocumentProgress('F');
  const sessionId = null;
  const reach = (name: string) =>
    progress.take({ method: 'Page.lifecycleEvent', sessionId, frameId: 'F', loaderId: 'L', name });
  const { signal } = new AbortController();
  const waiting = progress.until('load', { before: 'before', signal });
  for (const name of ['init', 'networkAlmostIdle']) reach(name);
  expect(progress.isStopped).toBe(false);
  reach('networkIdle');
  expect([await waiting, progress.isStopped]).toEqual(['L', true]);
  reach('DOMContentLoaded');
  expect(progress.isStopped).toBe(false);
});

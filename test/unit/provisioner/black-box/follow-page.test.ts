import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { TOO_LARGE } from '#src/browsers/chromium/cdp.ts';
import { followPage } from '#src/features/black-box/follow-page.ts';
import { createNotes } from '#src/features/black-box/notes.ts';
import type { EventListener, ObservedTarget } from '#src/browsers/observer/part.ts';

/** A page that a test speaks for. */
function aPage() {
  const sent: string[] = [];
  const listeners = new Map<string, EventListener>();
  const send: ObservedTarget['send'] = async <Result>(method: string) => {
    sent.push(method);
    return {} as Result;
  };
  const target = {
    targetId: 'main',
    send,
    on: (event: string, listener: EventListener) => void listeners.set(event, listener),
    closed: new AbortController().signal,
  } as unknown as ObservedTarget;
  const logError = (text: string) => {
    const params = { type: 'error', args: [{ value: text }], timestamp: Date.now() };
    listeners.get('Runtime.consoleAPICalled')?.(params);
  };
  const tooLarge = () => listeners.get(TOO_LARGE)?.({ bytes: 1e6 });
  return { target, sent, logError, tooLarge };
}

beforeEach(() => void vi.useFakeTimers({ now: 1_795_000_000_000 }));
afterEach(() => void vi.useRealTimers());

const ENABLED = ['Runtime.enable', 'Log.enable', 'Page.enable', 'Inspector.enable'];

test('a page is listened to, without the events of its network', async () => {
  const { target, sent, logError } = aPage();
  const notes = createNotes();
  await followPage(target, () => notes);
  expect(sent.splice(0)).toEqual(ENABLED);
  logError('one');
  logError('two');
  expect(notes.rings.consoleErrors.map(({ text }) => text)).toEqual(['one', 'two']);
  // What was logged for this listener is let go, once for both.
  await vi.advanceTimersByTimeAsync(1_000);
  expect(sent).toEqual(['Runtime.releaseObjectGroup']);
});

test('a page that writes without end is not listened to for a while', async () => {
  const { target, sent, logError } = aPage();
  const notes = createNotes();
  await followPage(target, () => notes);
  sent.length = 0;
  for (let n = 1; n <= 500; n += 1) logError(`error ${n}`);
  expect(notes.rings.consoleErrors.at(-1)?.text).toBe('error 200');
  expect(sent.filter((method) => method.endsWith('.disable'))).toEqual([
    'Runtime.disable',
    'Log.disable',
  ]);
  logError('unheard');
  await vi.advanceTimersByTimeAsync(5_000);
  expect(sent.slice(-2)).toEqual(['Runtime.enable', 'Log.enable']);
  logError('heard');
  expect(notes.rings.consoleErrors.at(-1)?.text).toBe('heard');
});

test('what a page told before is not noted again', async () => {
  const { target, tooLarge, logError } = aPage();
  const notes = createNotes();
  await followPage(target, () => notes);
  tooLarge();
  expect(notes.dropped).toBe(1);
  await vi.advanceTimersByTimeAsync(5_000);
  const now = Date.now();
  vi.setSystemTime(now - 1);
  logError('replayed');
  vi.setSystemTime(now);
  logError('new');
  expect(notes.rings.consoleErrors.map(({ text }) => text)).toEqual(['new']);
});

test('a page whose session wants no notes is not listened to', async () => {
  const { target, sent, logError } = aPage();
  const notes = createNotes();
  const page = await followPage(target, () => notes);
  await page.stop();
  expect(sent.slice(4)).toEqual(ENABLED.map((method) => method.replace('enable', 'disable')));
  logError('unwanted');
  expect(notes.rings.consoleErrors).toEqual([]);
});

import { describe, expect, it } from 'vitest';
import { filesMax } from '#events/session/files.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { FileQuestion } from '#src/kernel/messaging/session-files.ts';
import {
  FILE_BYTES_MAX,
  useSessionFiles,
  workloadId,
} from '#test/support/browsers/session-files.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** What becomes of downloads and uploads under way at an end, at a restart and in an outage. */

useVirtualTime();
const site = useSessionFiles();
const { begin, cancelled, download, progress, settled, told } = site;

const asked: FileQuestion = {
  ...{ organizationId: 'acme', sessionId: 'ses_1', workloadId },
  ...{ ask: 'begin', name: 'a', fileId: 'fil_1', bytes: 1 },
};

/** A store that takes no content until it is given up. */
function holdContent(): void {
  site.objects.put = (_key, _body, { signal } = {}) =>
    new Promise<never>((_, fail) =>
      signal?.addEventListener('abort', () => fail(signal.reason as Error)),
    );
}

it('a session that ends waits for its files no longer than it may', async () => {
  holdContent();
  const begunAt = performance.now();
  download('g1', 'slow', 'content');
  await settled();
  expect(told()).toEqual(['refused slow failed']);
  expect(performance.now() - begunAt).toBe(5_000);
});

describe('a server that leaves its browsers to another process', () => {
  it('records what is complete, and cancels what is not', async () => {
    const { put } = site.objects;
    site.objects.put = async (...of) => {
      await sleep(1_500);
      return put(...of);
    };
    download('g1', 'report.pdf', 'one');
    begin('g2', 'unfinished');
    progress('g2', 'inProgress', 5, 10);
    await site.files.leave();
    expect(told()).toEqual(['added report.pdf', 'refused unfinished failed']);
    expect(cancelled()).toEqual(['g2']);
  });

  it('waits for a copy no longer than 2 s', async () => {
    holdContent();
    const begunAt = performance.now();
    download('g1', 'slow', 'content');
    await site.files.leave();
    expect(told()).toEqual(['refused slow failed']);
    expect(performance.now() - begunAt).toBe(2_000);
  });

  it('begins nothing after it: a download is cancelled, a question is for the next', async () => {
    download('g1', 'report.pdf', 'one');
    await site.files.leave();
    begin('g2', 'late');
    expect(cancelled()).toEqual(['g2']);
    expect(await site.files.answer(asked)).toEqual({ kind: 'not-here' });
    expect(told()).toEqual(['added report.pdf']);
  });
});

describe('while the events of a session cannot be read', () => {
  it('its first download is followed, and recorded once they can', async () => {
    site.isAway = true;
    download('g1', 'report.pdf', 'one');
    begin('g2', 'film.mkv');
    await sleep(60_000);
    expect(told()).toEqual([]);
    site.isAway = false;
    progress('g2', 'inProgress', 10, FILE_BYTES_MAX + 1);
    progress('g2', 'canceled', 10, FILE_BYTES_MAX + 1);
    await sleep(2_000);
    expect(told()).toEqual(['refused film.mkv too_large', 'added report.pdf']);
  });

  it('as many downloads are followed as at other times, and further ones cancelled', () => {
    site.isAway = true;
    for (let at = 0; at <= 2 * filesMax; at += 1) download(`g${at}`, 'a', '');
    expect(cancelled()).toContain(`g${2 * filesMax}`);
  });

  it('an upload is refused after 10 s', async () => {
    site.isAway = true;
    const begunAt = performance.now();
    expect(await site.files.answer(asked)).toEqual({ kind: 'failed' });
    expect(performance.now() - begunAt).toBe(10_000);
  });

  it('a download is recorded as failed where the session ends', async () => {
    site.isAway = true;
    download('g1', 'report.pdf', 'one');
    await settled();
    expect(told()).toEqual(['refused report.pdf failed']);
  });
});

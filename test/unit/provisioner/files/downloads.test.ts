import { describe, expect, it } from 'vitest';
import { filesMax } from '#events/session/files.ts';
import type { SessionFile } from '#src/kernel/domain/session/files.ts';
import {
  SessionFileStore,
  type FileStoreDependencies,
} from '#src/features/files/session-file-store.ts';
import {
  FILE_BYTES_MAX,
  identity,
  SESSION_BYTES_MAX,
  useSessionFiles,
  workloadId,
} from '#test/support/browsers/session-files.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** What becomes of what a browser downloads, without a browser. */

useVirtualTime();
const site = useSessionFiles();
const { begin, cancelled, connect, download, openPage, progress, settled, tell, told } = site;

describe('what a browser downloads', () => {
  it('lands in the folder whatever context it is in', () => {
    tell('Target.targetCreated', { targetInfo: { type: 'page', browserContextId: 'ctx' } });
    tell('Target.targetCreated', { targetInfo: { type: 'page', browserContextId: 'ctx' } });
    const behaviors = site.sent.filter(({ method }) => method === 'Browser.setDownloadBehavior');
    expect(behaviors.map(({ params }) => params['browserContextId'])).toEqual([undefined, 'ctx']);
    for (const { params } of behaviors)
      expect(params).toMatchObject({ behavior: 'allowAndName', eventsEnabled: true });
  });

  it('is stored and recorded under a safe name; names that are taken are numbered', async () => {
    download('g1', '../../report.pdf', 'one');
    download('g2', 'report.pdf', 'two');
    await settled();
    expect(told()).toEqual(['added report.pdf', 'added report (1).pdf']);
    const [first] = await Array.fromAsync(site.objects.list('files/acme/ses_1/'));
    expect(first?.bytes).toBe(3);
  });

  it('keeps its content where it is not known whether it was recorded', async () => {
    site.recording = 'answer lost';
    download('g1', 'report.pdf', 'one');
    await settled();
    expect(told()[0]).toBe('added report.pdf');
    expect(await Array.fromAsync(site.objects.list('files/acme/ses_1/'))).toHaveLength(1);
  });

  it('leaves no content where the session does not take it any more', async () => {
    site.recording = 'refused';
    download('g1', 'report.pdf', 'one');
    await settled();
    expect(await Array.fromAsync(site.objects.list('files/acme/ses_1/'))).toEqual([]);
  });

  it('is cancelled as soon as it is too large', async () => {
    begin('g1', 'film.mkv');
    progress('g1', 'inProgress', 10, FILE_BYTES_MAX + 1);
    progress('g1', 'inProgress', 20, FILE_BYTES_MAX + 1);
    progress('g1', 'canceled', 20, FILE_BYTES_MAX + 1);
    await settled();
    expect(cancelled()).toEqual(['g1']);
    expect(told()).toEqual(['refused film.mkv too_large']);
  });

  it('is cancelled over the newer connection to its browser when an older one ends', async () => {
    const endOlder = await connect();
    await connect();
    endOlder();
    begin('g1', 'film.mkv');
    progress('g1', 'inProgress', 10, FILE_BYTES_MAX + 1);
    await settled();
    expect(cancelled()).toEqual(['g1']);
  });

  it('is refused with the reason in the console of the page that began it', async () => {
    const [mine, other] = [openPage('mine'), openPage('other')];
    begin('g1', 'film.mkv', 'mine');
    progress('g1', 'inProgress', 10, FILE_BYTES_MAX + 1);
    progress('g1', 'canceled', 10, FILE_BYTES_MAX + 1);
    await settled();
    expect([mine.written, other.written]).toEqual([
      [
        'The download of "film.mkv" was refused. ' +
          'FILE_TOO_LARGE: a file of this session may have 1,000 bytes.',
      ],
      [],
    ]);
  });

  it('is refused without a word to another page, where a frame began it that is no page', async () => {
    const other = openPage('other');
    for (const guid of ['g1', 'g2', 'g3']) {
      begin(guid, guid, 'frame');
      progress(guid, 'inProgress', 900, 0);
    }
    expect(cancelled()).toEqual(['g3']);
    await settled();
    expect(other.written).toEqual([]);
  });

  it('is refused without a word to the page of another browser, whatever frame began it', async () => {
    const anothers = openPage('page', 'wl_2');
    begin('g1', 'film.mkv', 'page');
    progress('g1', 'inProgress', 10, FILE_BYTES_MAX + 1);
    await settled();
    expect(cancelled()).toEqual(['g1']);
    expect(anothers.written).toEqual([]);
  });

  it('is refused without a word to its page, where that has closed', async () => {
    const mine = openPage('mine');
    begin('g1', 'film.mkv', 'mine');
    mine.close();
    progress('g1', 'inProgress', 10, FILE_BYTES_MAX + 1);
    await settled();
    expect(cancelled()).toEqual(['g1']);
    expect(mine.written).toEqual([]);
  });

  it.each([
    ['a page', 'https://shop.example/cart', 'https://other.example/'],
    ['a page without an origin', 'data:text/html,cart', 'data:text/html,other'],
  ])('is refused without a word to the site that %s shows by then', async (_, from, to) => {
    const mine = openPage('mine', workloadId, from);
    begin('g1', 'film.mkv', 'mine');
    mine.navigate(to);
    progress('g1', 'inProgress', 10, FILE_BYTES_MAX + 1);
    await settled();
    expect([cancelled(), mine.written]).toEqual([['g1'], []]);
    mine.navigate(from);
    begin('g2', 'film.mkv', 'mine');
    progress('g2', 'inProgress', 10, FILE_BYTES_MAX + 1);
    await settled();
    expect(mine.written).toHaveLength(1);
  });

  it('is refused with the reason in its page, also where it is larger than Chromium told', async () => {
    const mine = openPage('mine');
    begin('g1', 'a', 'mine');
    site.folders.put(workloadId, 'g1', Buffer.alloc(FILE_BYTES_MAX + 1));
    progress('g1', 'completed', 0, 0);
    await settled();
    expect(mine.written).toEqual([expect.stringContaining('FILE_TOO_LARGE')]);
  });

  it('is refused with a bounded number of lines in consoles', async () => {
    const mine = openPage('mine');
    for (let at = 0; at < 150; at += 1) {
      begin(`g${at}`, 'film.mkv', 'mine');
      progress(`g${at}`, 'inProgress', 10, FILE_BYTES_MAX + 1);
      progress(`g${at}`, 'canceled', 10, FILE_BYTES_MAX + 1);
    }
    await settled();
    expect(mine.written).toHaveLength(100);
  });

  it('is cancelled where all that is on its way is more than the session may have', async () => {
    for (const guid of ['g1', 'g2', 'g3']) {
      begin(guid, guid);
      progress(guid, 'inProgress', 900, 0);
    }
    await Promise.resolve();
    progress('g3', 'canceled', 900, 0);
    await settled();
    expect(told()[0]).toEqual('refused g3 quota');
  });

  it('is refused where it is larger than Chromium told', async () => {
    begin('g1', 'a');
    site.folders.put(workloadId, 'g1', Buffer.alloc(FILE_BYTES_MAX + 1));
    progress('g1', 'completed', 0, 0);
    await settled();
    expect(told()).toEqual(['refused a too_large']);
    const signal = AbortSignal.timeout(1_000);
    expect(await site.folders.read(workloadId, 'a', signal)).toBeNull();
  });

  it('is let go before it is removed: a Docker engine removes none that is being read', async () => {
    const steps: string[] = [];
    const { read, remove } = site.folders;
    site.folders.read = async (...of) => {
      const file = await read(...of);
      return file && { ...file, [Symbol.asyncDispose]: async () => void steps.push('let go') };
    };
    site.folders.remove = async (...of) => {
      steps.push('removed');
      await remove(...of);
    };
    begin('g1', 'a');
    site.folders.put(workloadId, 'g1', Buffer.alloc(FILE_BYTES_MAX + 1));
    progress('g1', 'completed', 0, 0);
    await settled();
    expect(steps.slice(0, 2)).toEqual(['let go', 'removed']);
  });

  it('is recorded as failed where it is cancelled, or not whole at the end', async () => {
    begin('g1', 'cancelled');
    progress('g1', 'canceled');
    begin('g2', 'unfinished');
    progress('g2', 'inProgress', 5, 10);
    await settled();
    expect(told()).toEqual(['refused cancelled failed', 'refused unfinished failed']);
  });

  it('never is out of the folder, whatever the browser tells', async () => {
    begin('../../etc/passwd', 'a');
    progress('../../etc/passwd', 'completed');
    await settled();
    expect(told()).toEqual(['refused a failed']);
  });

  it('leaves a bounded number of events', async () => {
    for (let at = 0; at < 150; at += 1) {
      begin(`g${at}`, 'a');
      progress(`g${at}`, 'canceled');
    }
    await settled();
    expect(site.events).toHaveLength(100);
  });
});

it('a session takes as many files and bytes as it may have, and another content of one that it has', async () => {
  const store = async (names: readonly string[], bytes: number) => {
    const known = names.map((name) => [name, { name, bytes } as SessionFile] as const);
    const limits = { fileBytesMax: FILE_BYTES_MAX, sessionBytesMax: SESSION_BYTES_MAX };
    const parts = { limits } as FileStoreDependencies;
    const one = new SessionFileStore(parts, workloadId, identity, async () => new Map(known));
    await one.known();
    return one;
  };
  const many = Array.from({ length: filesMax }, (_, at) => `file-${at}`);
  const tooMany = { reason: 'quota', max: filesMax, of: 'files' };
  expect((await store(many.slice(1), 0)).excess('file-0', 1)).toBeNull();
  expect((await store(many, 0)).excess('other', 1)).toEqual(tooMany);
  expect((await store(many, 0)).excess('file-0', 1)).toBeNull();
  const full = await store(['a', 'b'], SESSION_BYTES_MAX / 2 - 50);
  expect(full.excess('other', 100)).toBeNull();
  expect(full.excess('other', 101)).toEqual({ ...tooMany, max: SESSION_BYTES_MAX, of: 'bytes' });
  expect(full.excess('a', FILE_BYTES_MAX)).toBeNull();
});

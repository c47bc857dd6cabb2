import { createHash } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { createSessionFiles } from '#src/features/files/session-files.ts';
import { createObserver } from '#src/browsers/observer/observer.ts';
import type { Reporter } from '#src/commands/reporter.ts';
import { adapters, aSpec } from '#test/support/browsers/browsers-adapters.ts';
import {
  attachPage,
  evaluate,
  openCdp,
  type OpenedBrowsers,
} from '#test/support/browsers/browsers.fixture.ts';
import { eventually } from '#test/support/service/service.ts';

/** The folders for the files of sessions, and what Chromium itself saves there. */

const signal = AbortSignal.timeout(600_000);
const MIB = 1024 ** 2;

async function* pieces(count: number) {
  for (let at = 0; at < count; at += 1) yield Buffer.alloc(MIB, at);
}

describe.each(adapters)('the folder of a browser: $adapter', ({ adapter, open }) => {
  let opened: OpenedBrowsers;
  let browser: RunningBrowser;
  beforeAll(async () => {
    opened = await open();
    browser = await opened.browsers.launch(aSpec());
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());

  async function textOf(name: string): Promise<string | null> {
    await using file = await opened.browsers.folders.read(browser.workloadId, name, signal);
    return file && Buffer.concat(await Array.fromAsync(file.body)).toString();
  }
  const write = (name: string, text: string) => {
    const bytes = Buffer.from(text);
    const file = { bytes: bytes.length, body: pieceOf(bytes) };
    return opened.browsers.folders.write(browser.workloadId, name, file, signal);
  };
  async function* pieceOf(bytes: Buffer) {
    yield bytes;
  }

  it('keeps files under any safe name, and replaces them whole', async () => {
    const { folders } = opened.browsers;
    const name = `${'ü'.repeat(120)} ☃ -rf.txt`;
    await write(name, 'first');
    await write(name, 'second');
    expect(await textOf(name)).toBe('second');
    expect(await folders.rename(browser.workloadId, name, '-new', signal)).toBe(true);
    expect([await textOf(name), await textOf('-new')]).toEqual([null, 'second']);
    expect(await folders.rename(browser.workloadId, 'none', 'other', signal)).toBe(false);
    await folders.remove(browser.workloadId, '-new', signal);
    await folders.remove(browser.workloadId, '-new', signal);
    expect(await textOf('-new')).toBeNull();
  });

  it('keeps nothing of a body that fails', async () => {
    async function* failing() {
      yield Buffer.alloc(MIB);
      throw new Error('the source broke off');
    }
    const file = { bytes: 2 * MIB, body: failing() };
    const writing = opened.browsers.folders.write(browser.workloadId, 'half', file, signal);
    await expect(writing).rejects.toThrow();
    expect(await textOf('half')).toBeNull();
  });

  it('keeps a file that is larger than the browser’s memory for files', async () => {
    const { folders } = opened.browsers;
    const bytes = 80 * MIB;
    const file = { bytes, body: pieces(80) };
    await folders.write(browser.workloadId, 'large', file, signal);
    await using read = await folders.read(browser.workloadId, 'large', signal);
    expect(read?.bytes).toBe(bytes);
    const hash = createHash('sha256');
    for await (const piece of read?.body ?? []) hash.update(piece);
    const expected = createHash('sha256');
    for await (const piece of pieces(80)) expected.update(piece);
    expect(hash.digest('hex')).toBe(expected.digest('hex'));
    await folders.remove(browser.workloadId, 'large', signal);
  });

  it('can rename and remove a file that was opened and not read', async () => {
    const { folders } = opened.browsers;
    // More than all buffers on the way: the Docker engine locks a container until it is read.
    const file = { bytes: 8 * MIB, body: pieces(8) };
    await folders.write(browser.workloadId, 'untaken', file, signal);
    const read = await folders.read(browser.workloadId, 'untaken', signal);
    await read?.[Symbol.asyncDispose]();
    const soon = AbortSignal.timeout(60_000);
    expect(await folders.rename(browser.workloadId, 'untaken', 'renamed', soon)).toBe(true);
    await folders.remove(browser.workloadId, 'renamed', soon);
  });

  test.runIf(adapter !== 'simulated')('takes what a page downloads, under its name', async () => {
    const { workloadId } = browser;
    const recorded: SessionCommand[] = [];
    const objects = createMemoryObjectStore();
    const log = pino({ level: 'silent' });
    const files = createSessionFiles({
      ...{ folders: opened.browsers.folders, objects, log, now: Date.now },
      eventStore: { async *history() {} },
      limits: { fileBytesMax: MIB, sessionBytesMax: 2 * MIB },
    });
    const session = { organizationId: 'acme', id: 'ses_1' };
    const reporter = {
      async session(_: unknown, command: SessionCommand) {
        recorded.push(command);
        return { state: null, sequence: 1 };
      },
    };
    const served = { get: () => ({ workloadId, phase: 'busy' as const, session, browser: null }) };
    files.start(served, reporter as unknown as Reporter);
    using observer = createObserver({ parts: [files.part], log, attachWithinMs: 60_000 });
    await observer.attach(browser);
    using cdp = await openCdp(browser.cdp);
    const page = await attachPage(cdp);
    const save = (name: string, bytes: number) =>
      evaluate(
        cdp,
        page,
        `(() => { const link = document.createElement('a');
          link.href = URL.createObjectURL(new Blob(['x'.repeat(${bytes})]));
          link.download = ${JSON.stringify(name)}; link.click(); return true; })()`,
      );
    await save('Zürich ☃.txt', 1_000);
    await eventually(async () => recorded.length === 1, 'the first download is recorded');
    await save('Zürich ☃.txt', 1_001);
    await eventually(async () => recorded.length === 2, 'the second one is');
    await save('film.mkv', 2 * MIB);
    await eventually(async () => recorded.length === 3, 'the third one is');
    expect(recorded).toMatchObject([
      { type: 'RecordFileAdded', name: 'Zürich ☃.txt', bytes: 1_000, origin: 'download' },
      { type: 'RecordFileAdded', name: 'Zürich ☃ (1).txt', bytes: 1_001 },
      { type: 'RecordFileRefused', name: 'film.mkv', reason: 'too_large' },
    ]);
    expect((await textOf('Zürich ☃ (1).txt'))?.length).toBe(1_001);
    expect(await textOf('film.mkv')).toBeNull();
  });
});

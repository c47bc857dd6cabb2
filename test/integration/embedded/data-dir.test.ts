import { readFile, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { DataDirInUse, DataDirNotWritable, lockDataDir } from '#src/start/embedded/data-dir.ts';
import { scratchDir } from '#test/support/scratch.ts';

test('a second service on the same DATA_DIR is refused until the first has ended', async () => {
  await using dir = await scratchDir();
  const dataDir = `${dir.path}/data`;
  {
    await using running = new AsyncDisposableStack();
    running.use(await lockDataDir(dataDir));
    const second = lockDataDir(dataDir, { waitMs: 0 });
    await expect(second).rejects.toThrow(DataDirInUse);
    await expect(second).rejects.toThrow(`${dataDir} is in use`);
  }
  await using running = new AsyncDisposableStack();
  running.use(await lockDataDir(dataDir, { waitMs: 0 }));
});

test('a start waits for a service that is shutting down', async () => {
  await using dir = await scratchDir();
  const first = await lockDataDir(dir.path);
  const second = lockDataDir(dir.path, { waitMs: 10_000 });
  await first[Symbol.asyncDispose]();
  await using running = new AsyncDisposableStack();
  running.use(await second);
});

test('the lock of a killed service is taken over', async () => {
  await using dir = await scratchDir();
  // This process lives, but is not the one that had its number then.
  await writeFile(`${dir.path}/lock`, JSON.stringify({ pid: process.pid, start: 'earlier' }));
  await using running = new AsyncDisposableStack();
  running.use(await lockDataDir(dir.path, { waitMs: 0 }));
  expect(await readFile(`${dir.path}/lock`, 'utf8')).not.toContain('earlier');
});

test('a lock file that a power cut left unreadable is taken over', async () => {
  await using dir = await scratchDir();
  await writeFile(`${dir.path}/lock`, '');
  await using running = new AsyncDisposableStack();
  running.use(await lockDataDir(dir.path, { waitMs: 0 }));
});

test('of many that find a stale lock at once only one gets it', async () => {
  await using dir = await scratchDir();
  await writeFile(`${dir.path}/lock`, JSON.stringify({ pid: process.pid, start: 'earlier' }));
  const all = await Promise.allSettled(
    Array.from({ length: 20 }, () => lockDataDir(dir.path, { waitMs: 0 })),
  );
  expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
});

test('a DATA_DIR that cannot be created is named in the error, with the reason', async () => {
  await using dir = await scratchDir();
  await writeFile(`${dir.path}/file`, '');
  const locking = lockDataDir(`${dir.path}/file/data`);
  await expect(locking).rejects.toThrow(DataDirNotWritable);
  await expect(locking).rejects.toThrow(`${dir.path}/file/data cannot be written: ENOTDIR`);
});

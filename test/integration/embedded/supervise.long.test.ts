import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { endOrphan } from '#src/start/embedded/orphan-process.ts';
import { processStart } from '#src/start/embedded/pid-lock.mjs';
import { ChildNotStarted, supervise } from '#src/start/embedded/supervise.ts';
import type { Program } from '#src/start/embedded/supervise.ts';
import { isRunning, scratchDir } from '#test/support/scratch.ts';

const OWNER = fileURLToPath(new URL('../../support/owner.ts', import.meta.url));
/** Prints when it no longer reacts to SIGTERM. */
const STUBBORN =
  "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.log('deaf');";

test('the orphan of a service killed with -9 is ended by the next start', async () => {
  await using dir = await scratchDir();
  const owner = spawn(process.execPath, [OWNER, dir.path, process.execPath, '-e', STUBBORN], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(owner.stdout, 'data');
  const left = await recordedPid(`${dir.path}/stubborn.pid`);
  owner.kill('SIGKILL');
  await once(owner, 'exit');
  expect(isRunning(left)).toBe(true);

  await using running = new AsyncDisposableStack();
  running.use(await supervise(program(dir.path, ['sleep', '60']), ignoring));
  expect(isRunning(left)).toBe(false);
  expect(await recordedPid(`${dir.path}/stubborn.pid`)).not.toBe(left);
});

test('a process that reuses the recorded process id is not ended', async () => {
  await using dir = await scratchDir();
  const pidFile = `${dir.path}/child.pid`;
  const bystander = spawn('sleep', ['60']);
  const pid = await pidOf(bystander);
  const start = processStart(pid);

  await writeFile(pidFile, JSON.stringify({ pid, start: 'earlier', program: 'sleep' }));
  await endOrphan(pidFile);
  await writeFile(pidFile, JSON.stringify({ pid, start, program: 'nats-server' }));
  await endOrphan(pidFile);
  expect(isRunning(pid)).toBe(true);

  await writeFile(pidFile, JSON.stringify({ pid, start, program: 'sleep' }));
  await endOrphan(pidFile);
  expect(isRunning(pid)).toBe(false);
  expect(existsSync(pidFile)).toBe(false);
});

test('a program that never answers is given up, with its last output in the error', async () => {
  await using dir = await scratchDir();
  const failing = program(dir.path, ['sh', '-c', 'echo the store is broken; exit 1']);
  const started = supervise({ ...failing, answers: async () => false }, ignoring);
  await expect(started).rejects.toThrow(ChildNotStarted);
  await expect(started).rejects.toThrow('the store is broken');
  const starts = (await readFile(failing.logFile, 'utf8')).trim().split('\n');
  expect(starts).toHaveLength(10);
});

test('a child that ignores SIGTERM is killed', async () => {
  await using dir = await scratchDir();
  let pid = 0;
  {
    const stubborn = program(dir.path, [process.execPath, '-e', STUBBORN]);
    await using running = new AsyncDisposableStack();
    running.use(await supervise({ ...stubborn, answers: () => isDeaf(dir.path) }, ignoring));
    pid = await recordedPid(stubborn.pidFile);
    expect(isRunning(pid)).toBe(true);
  }
  expect(isRunning(pid)).toBe(false);
});

test('a log of more than 10 MB is emptied at the start', async () => {
  await using dir = await scratchDir();
  const quiet = program(dir.path, ['sleep', '60']);
  await writeFile(quiet.logFile, Buffer.alloc(11 * 1024 * 1024));
  await using running = new AsyncDisposableStack();
  running.use(await supervise(quiet, ignoring));
  expect((await stat(quiet.logFile)).size).toBe(0);
});

const ignoring = { onRestart: () => {}, onGiveUp: () => {} };

function program(folder: string, [command = '', ...args]: readonly string[]): Program {
  return {
    name: command,
    command,
    args,
    pidFile: `${folder}/stubborn.pid`,
    logFile: `${folder}/stubborn.log`,
    answers: async () => true,
    readyMs: 5000,
  };
}

async function isDeaf(folder: string): Promise<boolean> {
  return (await readFile(`${folder}/stubborn.log`, 'utf8')).includes('deaf');
}

async function recordedPid(pidFile: string): Promise<number> {
  return (JSON.parse(await readFile(pidFile, 'utf8')) as { pid: number }).pid;
}

async function pidOf(child: ChildProcess): Promise<number> {
  await once(child, 'spawn');
  return child.pid ?? 0;
}

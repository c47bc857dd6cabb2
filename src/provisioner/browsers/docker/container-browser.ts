import type Docker from 'dockerode';
import type { BrowserExit } from '../browsers.ts';
import { lastWords } from './container.ts';
import { bounded } from './engine.ts';
import type { Launched } from './launch.ts';

/**
 * A browser that this process launches or runs: launching until `launched` is set, ending once
 * `ending` is; gone when nobody holds it any more.
 */
export type Entry = {
  stopped: AbortController;
  launching: Promise<unknown>;
  launched: Launched | null;
  sessionId: string | null;
  ending: Promise<void> | null;
  /** How it ended, if it did so between its readiness and this process's knowing of that. */
  died: End | null;
  /** When the kernel last killed a process in it for want of memory. */
  memoryKilledAt: number | null;
};

/** How and when a container ended. */
export type End = {
  /** Null where it is not known. */
  exitCode: number | null;
  /** Milliseconds since the epoch. */
  endedAt: number;
};

export function newEntry(stopped: AbortController, launching: Promise<unknown>): Entry {
  return {
    stopped,
    launching,
    launched: null,
    sessionId: null,
    ending: null,
    died: null,
    memoryKilledAt: null,
  };
}

/** A kill for want of memory explains an end that comes within this. */
const MEMORY_KILL_MS = 5_000;
/** 128 and SIGKILL: what the kernel's killing of Chromium itself looks like. */
const KILLED = 137;

/** The last line of deploy/browser/entrypoint.sh where Chromium was closed. */
const CLOSED_WORDS = 'Chromium was closed';

/** Why a browser ended, by its container's exit code and last words. */
export function reasonOf(
  entry: Pick<Entry, 'memoryKilledAt'>,
  exitCode: number | null,
  words: string,
): BrowserExit['reason'] {
  if (isClose(exitCode, words)) return 'browser_closed';
  return isOutOfMemory(entry, exitCode) ? 'out_of_memory' : 'browser_crashed';
}

/** Both: an engine may say 0 of a container whose exit code it has lost. */
function isClose(exitCode: number | null, words: string): boolean {
  return exitCode === 0 && words.trimEnd().endsWith(CLOSED_WORDS);
}

/** A page's own process killed for want of memory is no end; Chromium's, soon after, is one. */
function isOutOfMemory(
  { memoryKilledAt }: Pick<Entry, 'memoryKilledAt'>,
  exitCode: number | null,
): boolean {
  if (memoryKilledAt === null || exitCode !== KILLED) return false;
  return performance.now() - memoryKilledAt < MEMORY_KILL_MS;
}

/** What the engine keeps of the end of a container; null where it runs, or cannot be asked. */
export async function endOf(container: Docker.Container): Promise<End | null> {
  try {
    const { State } = await container.inspect(bounded());
    if (State.Running) return null;
    return { exitCode: State.ExitCode, endedAt: Date.parse(State.FinishedAt) };
  } catch {
    return null;
  }
}

/** When the user closed the browser in a container that has ended; null where that is not known. */
export async function closedAtOf(container: Docker.Container): Promise<number | null> {
  const end = await endOf(container);
  // The rest is no close by its code alone.
  if (end?.exitCode !== 0) return null;
  const words = await lastWords(container).catch(() => '');
  return isClose(end.exitCode, words) ? end.endedAt : null;
}

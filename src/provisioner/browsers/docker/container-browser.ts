import type Docker from 'dockerode';
import type { BrowserExit } from '../browsers.ts';
import { isClose } from '../chromium/closed.ts';
import type { PlacedBrowser } from '../own-browsers.ts';
import { lastOutput } from './container.ts';
import { bounded } from './engine.ts';
import type { Launched } from './launch.ts';

export type ContainerBrowser = PlacedBrowser<Launched, ContainerExit> & {
  /** When the kernel last killed a process in it for lack of memory, on the monotonic clock. */
  memoryKilledAt: number | null;
};

/** How and when a container ended. */
export type ContainerExit = {
  /** Null if it is not known. */
  exitCode: number | null;
  /** Milliseconds since the epoch. */
  endedAt: number;
};

/** A kill for lack of memory explains an exit that follows within this. */
const MEMORY_KILL_MS = 5_000;
/** 128 + SIGKILL: the exit code where the kernel has killed Chromium itself. */
const KILLED = 137;

/** Why a browser ended, by its container's exit code and last output. */
export function reasonOf(
  browser: Pick<ContainerBrowser, 'memoryKilledAt'>,
  exitCode: number | null,
  output: string,
): BrowserExit['reason'] {
  if (isClose(exitCode, output)) return 'browser_closed';
  return isOutOfMemory(browser, exitCode) ? 'out_of_memory' : 'browser_crashed';
}

/** The kernel's kill of a page's process ends no browser; a kill of Chromium soon after does. */
function isOutOfMemory(
  { memoryKilledAt }: Pick<ContainerBrowser, 'memoryKilledAt'>,
  exitCode: number | null,
): boolean {
  if (memoryKilledAt === null || exitCode !== KILLED) return false;
  return performance.now() - memoryKilledAt < MEMORY_KILL_MS;
}

/** What the engine keeps of a container's exit; null if it runs or cannot be inspected. */
export async function readExit(container: Docker.Container): Promise<ContainerExit | null> {
  try {
    const { State } = await container.inspect(bounded());
    if (State.Running) return null;
    return { exitCode: State.ExitCode, endedAt: Date.parse(State.FinishedAt) };
  } catch {
    return null;
  }
}

/** When the user closed the browser of an ended container; null if that is not known. */
export async function closedAtOf(container: Docker.Container): Promise<number | null> {
  const exit = await readExit(container);
  // With any other code it was no close, so its output need not be read.
  if (exit?.exitCode !== 0) return null;
  const output = await lastOutput(container).catch(() => '');
  return isClose(exit.exitCode, output) ? exit.endedAt : null;
}

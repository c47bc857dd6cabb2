import type Docker from 'dockerode';
import { isClose } from '../chromium/closed.ts';
import { lastOutput } from './container.ts';
import { bounded } from './engine.ts';

/** How and when a container ended. */
export type ContainerExit = {
  /** Null if it is not known. */
  exitCode: number | null;
  /** Milliseconds since the epoch. */
  endedAt: number;
};

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

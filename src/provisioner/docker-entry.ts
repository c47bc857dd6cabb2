import type Docker from 'dockerode';
import { bounded } from './docker-engine.ts';
import type { Launched } from './docker-launch.ts';

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
  died: { exitCode: number | null } | null;
  /** When the kernel last killed a process in it for want of memory. */
  memoryKilledAt: number | null;
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

/** A page's own process killed for want of memory is no end; Chromium's, soon after, is one. */
export function isOutOfMemory({ memoryKilledAt }: Entry, exitCode: number | null): boolean {
  if (memoryKilledAt === null || exitCode !== KILLED) return false;
  return performance.now() - memoryKilledAt < MEMORY_KILL_MS;
}

/** Null where it runs, or cannot be asked. */
export async function exitCodeOf(container: Docker.Container): Promise<number | null> {
  try {
    const { State } = await container.inspect(bounded());
    return State.Running ? null : State.ExitCode;
  } catch {
    return null;
  }
}

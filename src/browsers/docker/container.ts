import { PassThrough } from 'node:stream';
import type Docker from 'dockerode';
import { retry } from '#src/kernel/async/retry.ts';
import { answered, bounded, statusOf, WORK_MS } from './engine.ts';
import { keepTail, splitLines, tailOf } from '../output.ts';

/** A started container and its output. */
export type StartedContainer = {
  container: Docker.Container;
  /** Resolves with its exit code when it has ended; null: the engine did not answer. */
  ended: Promise<number | null>;
  /** The last lines of its output, at most 2 KiB. */
  tail: () => string;
  /** Ends the reading of its output; the container runs on. */
  detach: () => void;
};

/** `prepare` is called with the container before it starts. */
type StartOptions = {
  /** What its first program reads. */
  input?: string;
  onLine?: (line: string) => void;
  prepare?: (container: Docker.Container) => Promise<void>;
  signal?: AbortSignal;
};

/** The longest wait for a removal that another client has begun. */
const REMOVAL_MS = 10_000;
/** The longest time between the end of a container's output and its exit code. */
const EXIT_CODE_MS = 5_000;
const LOG_LINES = 60;

/**
 * Creates and starts a container and calls back for each line of its output.
 * @throws the engine's error; the container is removed then
 */
export async function startContainer(
  docker: Docker,
  options: Docker.ContainerCreateOptions,
  { input, onLine, prepare, signal }: StartOptions = {},
): Promise<StartedContainer> {
  const reading =
    input === undefined ? {} : { AttachStdin: true, OpenStdin: true, StdinOnce: true };
  const container = await docker.createContainer({ ...options, ...reading, ...bounded() });
  const waitAborted = new AbortController();
  let output: (NodeJS.ReadWriteStream & { destroy?(): void }) | null = null;
  const detach = (): void => output?.destroy?.();
  try {
    // Attached before the start, so that no output is missed.
    output = await attach(container, input !== undefined, signal);
    if (input !== undefined) output.write(input);
    const exit = awaitExit(container, waitAborted.signal);
    const tail = keepTail();
    const outputEnded = readOutput(container, output, (line) => {
      tail.add(line);
      onLine?.(line);
    });
    await prepare?.(container);
    await container.start(bounded(signal));
    // The client never settles a request whose response was cut off, even after an abort.
    const ended = outputEnded
      .then(() => answered(exit, EXIT_CODE_MS))
      .catch(() => null)
      .finally(() => waitAborted.abort());
    return { container, ended, tail: tail.text, detach };
  } catch (error) {
    waitAborted.abort();
    detach();
    await removeContainer(container);
    // The signal's reason is more precise than the error of the request that it aborted.
    signal?.throwIfAborted();
    throw error;
  }
}

/**
 * Options of a container that ends and is removed by itself, in case this process is killed before
 * it removes it. `options` names the entrypoint, and the image has `timeout`.
 */
export function shortLived(
  options: Docker.ContainerCreateOptions,
  livesMs: number,
): Docker.ContainerCreateOptions {
  const entrypoint = [options.Entrypoint ?? []].flat();
  return {
    ...options,
    Entrypoint: ['timeout', String(Math.ceil(livesMs / 1000)), ...entrypoint],
    HostConfig: { ...options.HostConfig, AutoRemove: true },
  };
}

/**
 * Runs a container to its end and removes it; it is killed after `withinMs`. `options` names the
 * entrypoint, and the image has `timeout`.
 */
export async function runContainer(
  docker: Docker,
  options: Docker.ContainerCreateOptions,
  withinMs: number,
): Promise<{ exitCode: number | null; lines: string[] }> {
  const lines: string[] = [];
  const onLine = (line: string): void => void lines.push(line);
  // Its own limit applies where this process is not there any more to kill it.
  const started = await startContainer(docker, shortLived(options, 2 * withinMs), { onLine });
  const late = setTimeout(() => started.detach(), withinMs);
  try {
    return { exitCode: await started.ended, lines };
  } finally {
    clearTimeout(late);
    await removeContainer(started.container);
  }
}

/** Ends and removes a container. Idempotent. */
export async function removeContainer(container: Docker.Container): Promise<void> {
  const options = {
    withinMs: REMOVAL_MS,
    pauseMs: () => 10,
    // Another client is removing it: the next attempt shows when it is gone.
    isTransient: (error: unknown) => statusOf(error) === 409,
  };
  try {
    await retry(options, () =>
      container.remove({ force: true, v: true, ...bounded(undefined, WORK_MS) }),
    );
  } catch (error) {
    if (statusOf(error) !== 404) throw error;
  }
}

/** The last lines of a container's output, at most 2 KiB; empty where the engine refuses. */
export async function lastOutput(container: Docker.Container): Promise<string> {
  try {
    const options = { stdout: true, stderr: true, tail: LOG_LINES, follow: false } as const;
    return tailOf(unpack(await container.logs({ ...options, ...bounded() })));
  } catch (error) {
    if (statusOf(error) === null) throw error;
    return '';
  }
}

/** The engine frames the output of both streams: kind, three zeros, length, text. */
function* unpack(output: Buffer): Generator<string> {
  for (let at = 0; at + 8 <= output.length;) {
    const length = output.readUInt32BE(at + 4);
    yield output.toString('utf8', at + 8, at + 8 + length);
    at += 8 + length;
  }
}

/** Resolves when the container has closed its output. */
async function readOutput(
  container: Docker.Container,
  output: NodeJS.ReadWriteStream,
  onLine: (line: string) => void,
): Promise<void> {
  const text = new PassThrough({ encoding: 'utf8' });
  const lines = splitLines(onLine);
  text.on('data', lines);
  const { modem } = container as {
    modem: { demuxStream(all: object, o: object, e: object): void };
  };
  modem.demuxStream(output, text, text);
  const { promise, resolve } = Promise.withResolvers<void>();
  output.on('end', resolve).on('close', resolve).on('error', resolve);
  await promise;
  lines('\n');
}

/**
 * The output of a container from now on, and its input where it has one. The time limit is for the
 * answer, not for the stream.
 */
async function attach(
  container: Docker.Container,
  hasInput: boolean,
  signal?: AbortSignal,
): Promise<NodeJS.ReadWriteStream> {
  signal?.throwIfAborted();
  const cut = new AbortController();
  const late = bounded(signal).abortSignal;
  const abort = (): void => cut.abort(late.reason);
  late.addEventListener('abort', abort);
  try {
    const streams = { stream: true, stdout: true, stderr: true };
    // Only a connection that the engine hands over carries input.
    const input = hasInput ? { stdin: true, hijack: true } : {};
    return await container.attach({ ...streams, ...input, abortSignal: cut.signal });
  } finally {
    late.removeEventListener('abort', abort);
  }
}

/** Called before the start: a container that removes itself keeps no exit code. */
async function awaitExit(
  container: Docker.Container,
  abortSignal: AbortSignal,
): Promise<number | null> {
  try {
    const options = { condition: 'next-exit', abortSignal } as const;
    const { StatusCode } = (await container.wait(options)) as { StatusCode: number };
    return StatusCode;
  } catch {
    return null;
  }
}

/**
 * Bytes of memory that a container uses, without files that the kernel may drop; with cgroup v1 the
 * most that it has used, with them. Null: it does not run.
 * @throws Error if the engine does not answer
 */
export async function memoryUsedBy(container: Docker.Container): Promise<number | null> {
  const options = { stream: false, 'one-shot': true, ...bounded() } as const;
  // Empty where the container does not run; with cgroup v2 there is no `max_usage`.
  const { memory_stats } = await container.stats(options);
  const { max_usage: peak, usage, stats }: Partial<Docker.MemoryStats> = memory_stats;
  const droppable = stats?.inactive_file ?? 0;
  return peak ?? (usage === undefined ? null : Math.max(0, usage - droppable));
}

import { PassThrough } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type Docker from 'dockerode';
import { answered, bounded, statusOf } from './engine.ts';
import { keepTail, splitLines } from '../output.ts';

/** A container that was started, as long as it is listened to. */
export type StartedContainer = {
  container: Docker.Container;
  /** Resolves with its exit code when it has ended; null: it cannot be asked. */
  ended: Promise<number | null>;
  /** The last of what it said, at most 2 KiB. */
  tail: () => string;
  /** Listens no more; the container runs on. */
  letGo: () => void;
};

/** The longest wait for a container that somebody else is already removing. */
const REMOVAL_MS = 10_000;
/** Between a container's last word and its exit code. */
const EXIT_CODE_MS = 5_000;
const LOG_LINES = 60;

/**
 * Makes and starts a container, and calls back for each line it says.
 * @throws the engine's error; nothing of the container is left then
 */
export async function startContainer(
  docker: Docker,
  options: Docker.ContainerCreateOptions,
  { onLine, signal }: { onLine?: (line: string) => void; signal?: AbortSignal } = {},
): Promise<StartedContainer> {
  const container = await docker.createContainer({ ...options, ...bounded() });
  const nobodyAsks = new AbortController();
  let said: (NodeJS.ReadWriteStream & { destroy?(): void }) | null = null;
  const letGo = (): void => said?.destroy?.();
  try {
    // Before its start: what it says at once is heard too.
    said = await attach(container, signal);
    const exit = awaitExit(container, nobodyAsks.signal);
    const tail = keepTail();
    const over = listen(container, said, (line) => {
      tail.add(line);
      onLine?.(line);
    });
    await container.start(bounded(signal));
    // The client never settles a request whose answer was cut short, abort or not.
    const ended = over
      .then(() => answered(exit, EXIT_CODE_MS))
      .catch(() => null)
      .finally(() => nobodyAsks.abort());
    return { container, ended, tail: tail.text, letGo };
  } catch (error) {
    nobodyAsks.abort();
    letGo();
    await removeContainer(container);
    // Its reason says more than the request's that it cut short.
    signal?.throwIfAborted();
    throw error;
  }
}

/**
 * Options of a container that ends and goes by itself: whoever made it may be killed before he
 * removes it. They name its entrypoint, and its image has `timeout`.
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
 * Runs a container to its end and removes it; one that takes longer than that is killed. The
 * options name its entrypoint, and its image has `timeout`.
 */
export async function runContainer(
  docker: Docker,
  options: Docker.ContainerCreateOptions,
  withinMs: number,
): Promise<{ exitCode: number | null; lines: string[] }> {
  const lines: string[] = [];
  const onLine = (line: string): void => void lines.push(line);
  // Its own bound is for when nobody is there any more to kill it.
  const started = await startContainer(docker, shortLived(options, 2 * withinMs), { onLine });
  const late = setTimeout(() => started.letGo(), withinMs);
  try {
    return { exitCode: await started.ended, lines };
  } finally {
    clearTimeout(late);
    await removeContainer(started.container);
  }
}

/** Ends and removes a container; one that is not there is a success. */
export async function removeContainer(container: Docker.Container): Promise<void> {
  const deadline = performance.now() + REMOVAL_MS;
  for (;;) {
    try {
      return await container.remove({ force: true, v: true, ...bounded() });
    } catch (error) {
      if (statusOf(error) === 404) return;
      // Somebody else is at it: the next try says when it is gone.
      if (statusOf(error) !== 409 || performance.now() > deadline) throw error;
    }
    await pause(10);
  }
}

/** The last lines that a container has said, at most 2 KiB; empty where it cannot be asked. */
export async function lastWords(container: Docker.Container): Promise<string> {
  const tail = keepTail();
  try {
    const options = { stdout: true, stderr: true, tail: LOG_LINES, follow: false } as const;
    const said = await container.logs({ ...options, ...bounded() });
    const lines = splitLines((line) => tail.add(line));
    for (const text of unpack(said)) lines(text);
    lines('\n');
  } catch (error) {
    if (statusOf(error) === null) throw error;
  }
  return tail.text();
}

/** Output of both streams comes in frames: kind, three zeros, length, text. */
function* unpack(said: Buffer): Generator<string> {
  for (let at = 0; at + 8 <= said.length;) {
    const length = said.readUInt32BE(at + 4);
    yield said.toString('utf8', at + 8, at + 8 + length);
    at += 8 + length;
  }
}

/** Resolves when the container has closed its output. */
async function listen(
  container: Docker.Container,
  said: NodeJS.ReadWriteStream,
  onLine: (line: string) => void,
): Promise<void> {
  const text = new PassThrough({ encoding: 'utf8' });
  const lines = splitLines(onLine);
  text.on('data', lines);
  const { modem } = container as {
    modem: { demuxStream(all: object, o: object, e: object): void };
  };
  modem.demuxStream(said, text, text);
  const { promise, resolve } = Promise.withResolvers<void>();
  said.on('end', resolve).on('close', resolve).on('error', resolve);
  await promise;
  lines('\n');
}

/** What a container says from now on; the bound is the answer's, not its own. */
async function attach(
  container: Docker.Container,
  signal?: AbortSignal,
): Promise<NodeJS.ReadWriteStream> {
  signal?.throwIfAborted();
  const cut = new AbortController();
  const late = bounded(signal).abortSignal;
  const abort = (): void => cut.abort(late.reason);
  late.addEventListener('abort', abort);
  try {
    const streams = { stream: true, stdout: true, stderr: true };
    return await container.attach({ ...streams, abortSignal: cut.signal });
  } finally {
    late.removeEventListener('abort', abort);
  }
}

/** Asked before its start: a container that removes itself has no exit code to tell later. */
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

import { once } from 'node:events';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { createBackOff } from '#src/kernel/async/back-off.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { workloadIdOf } from './naming.ts';
import { splitLines } from '../output.ts';

/** An event of the engine about a browser's container. */
export type ContainerEvent = {
  workloadId: string;
  action: 'oom' | 'die' | 'destroy';
  /** Set for `die`. */
  exitCode: number | null;
  /** By the engine's clock, milliseconds since the epoch; the event may arrive later. */
  at: number;
};

export type WatchHandlers = {
  onEvent(event: ContainerEvent): void;
  /** The stream has begun or resumed: missed events must be found by listing the containers. */
  onConnected(): Promise<void>;
  /** The stream has ended or could not begin. */
  onDisconnected(error: unknown): void;
};

export type ContainerWatcher = AsyncDisposable & {
  /** Reconnects the stream, where the engine may be away. */
  reconnect(): void;
};

/**
 * Follows the engine's events about the filtered containers, reconnecting after each failure.
 * Resolves once the first stream has begun: no event is missed from then on.
 */
export async function watchContainers(
  docker: Docker,
  filter: { label: string[] },
  watch: WatchHandlers,
): Promise<ContainerWatcher> {
  const stop = new AbortController();
  const { signal } = stop;
  const begun = Promise.withResolvers<void>();
  const cursor = { since: null as number | null };
  let current: Readable | null = null;

  async function follow(): Promise<void> {
    const backOff = createBackOff();
    while (!signal.aborted) {
      try {
        const stream = await open(docker, filter, cursor.since, signal);
        current = stream;
        backOff.reset();
        begun.resolve();
        try {
          await Promise.all([read(stream, cursor, watch), watch.onConnected()]);
        } finally {
          stream.destroy();
        }
        if (!signal.aborted) watch.onDisconnected(new Error('the event stream has ended'));
      } catch (error) {
        if (signal.aborted) return;
        begun.reject(error);
        watch.onDisconnected(error);
      }
      await sleep(backOff.nextMs(), signal, { ref: false });
    }
  }
  const ended = follow();
  await begun.promise;
  return {
    reconnect: () => void current?.destroy(),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await ended;
    },
  };
}

/** `since` makes the engine repeat the events of that second and send all later ones. */
async function open(
  docker: Docker,
  { label }: { label: string[] },
  since: number | null,
  abortSignal: AbortSignal,
): Promise<Readable> {
  const filters = JSON.stringify({ type: ['container'], event: ['oom', 'die', 'destroy'], label });
  const options = { filters, ...(since === null ? {} : { since }), abortSignal };
  return (await docker.getEvents(options)) as Readable;
}

type EngineEvent = {
  Action: string;
  time: number;
  timeNano: number;
  Actor: { Attributes: Record<string, string> };
};

/** Resolves when the stream ends or fails. */
async function read(
  stream: Readable,
  cursor: { since: number | null },
  watch: WatchHandlers,
): Promise<void> {
  const lines = splitLines((line) => {
    const event = parse(line);
    if (event === null) return;
    const { Action: action, time, timeNano, Actor } = event;
    cursor.since = time;
    const workloadId = workloadIdOf(Actor.Attributes);
    if (workloadId === null || !isKnown(action)) return;
    const { exitCode } = Actor.Attributes;
    watch.onEvent({
      workloadId,
      action,
      exitCode: exitCode === undefined ? null : Number(exitCode),
      at: Math.floor(timeNano / 1e6),
    });
  });
  stream.on('data', (chunk: Buffer) => lines(chunk.toString()));
  stream.on('error', () => {});
  await once(stream, 'close').catch(() => {});
}

/** An unreadable event counts as missed: the next reconciliation finds what it was about. */
function parse(line: string): EngineEvent | null {
  try {
    return JSON.parse(line) as EngineEvent;
  } catch {
    return null;
  }
}

function isKnown(action: string): action is ContainerEvent['action'] {
  return action === 'oom' || action === 'die' || action === 'destroy';
}

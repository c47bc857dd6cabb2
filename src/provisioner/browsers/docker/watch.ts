import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type Docker from 'dockerode';
import { workloadOfEvent } from './naming.ts';
import { splitLines } from '../output.ts';

/** What the engine tells of a browser's container. */
export type ContainerEvent = {
  workloadId: string;
  action: 'oom' | 'die' | 'destroy';
  /** Set where it has died. */
  exitCode: number | null;
  /** By the engine's clock, milliseconds since the epoch; it may be told later than it happened. */
  at: number;
};

export type Watch = {
  onEvent(event: ContainerEvent): void;
  /** The stream has begun, for the first time or anew: what was missed has to be looked up. */
  onConnected(): Promise<void>;
  /** It has ended, or does not begin. */
  onAway(error: unknown): void;
};

export type Watching = AsyncDisposable & {
  /** Has the stream end and begin anew, where the engine is suspected to be away. */
  again(): void;
};

const AWAY_MIN_MS = 100;
const AWAY_MAX_MS = 5_000;

/**
 * Follows the engine's events about some containers, connecting again as often as it takes.
 * Resolves once the first stream has begun: nothing is missed from then on.
 */
export async function watchContainers(
  docker: Docker,
  filter: { label: string[] },
  watch: Watch,
): Promise<Watching> {
  const stop = new AbortController();
  const { signal } = stop;
  const begun = Promise.withResolvers<void>();
  const cursor = { since: null as number | null };
  let current: Readable | null = null;

  async function follow(): Promise<void> {
    for (let awayMs = AWAY_MIN_MS; !signal.aborted;) {
      try {
        const stream = await open(docker, filter, cursor.since, signal);
        current = stream;
        awayMs = AWAY_MIN_MS;
        begun.resolve();
        try {
          await Promise.all([read(stream, cursor, watch), watch.onConnected()]);
        } finally {
          stream.destroy();
        }
        if (!signal.aborted) watch.onAway(new Error('its events have ended'));
      } catch (error) {
        if (signal.aborted) return;
        begun.reject(error);
        watch.onAway(error);
      }
      await pause(awayMs, undefined, { signal, ref: false }).catch(() => {});
      awayMs = Math.min(awayMs * 2, AWAY_MAX_MS);
    }
  }
  const ended = follow();
  await begun.promise;
  return {
    again: () => void current?.destroy(),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await ended;
    },
  };
}

/** `since` has the engine tell again what it told in that second, and what came after. */
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

type Told = {
  Action: string;
  time: number;
  timeNano: number;
  Actor: { Attributes: Record<string, string> };
};

/** Resolves when the stream ends, however it does. */
async function read(
  stream: Readable,
  cursor: { since: number | null },
  watch: Watch,
): Promise<void> {
  const lines = splitLines((line) => {
    const told = parse(line);
    if (told === null) return;
    const { Action: action, time, timeNano, Actor } = told;
    cursor.since = time;
    const workloadId = workloadOfEvent(Actor.Attributes);
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

/** One that cannot be read is one that was missed: the next comparison finds what it was about. */
function parse(line: string): Told | null {
  try {
    return JSON.parse(line) as Told;
  } catch {
    return null;
  }
}

function isKnown(action: string): action is ContainerEvent['action'] {
  return action === 'oom' || action === 'die' || action === 'destroy';
}

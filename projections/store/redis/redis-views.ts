import { readFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { Unavailable } from '#src/errors.ts';
import { createTurns } from '#src/async/serial-queue.ts';
import { assertBatch, assertPage } from '../limits.ts';
import { createReached } from '../wait-for-checkpoint.ts';
import {
  checkpointChannels,
  keysOf,
  projectionOf,
  scripts,
  writeArguments,
  type ScriptCommands,
} from './scripts.ts';
import { createRedisUpkeep } from './maintenance.ts';
import { upkeepScripts, type UpkeepCommands } from './maintenance-scripts.ts';
import type { Upkeep } from '../maintenance.ts';
import type { Views } from '../views.ts';

/** The port's bound on an answer; also on a connection attempt and on a silent connection. */
const ANSWER_MS = 1000;
const RECONNECT_MS_MAX = 500;
/** Pages of several lists that wait for each other: of 100,000 views one takes some 30 ms. */
const INTERSECTIONS_MAX = 30;

export type RedisViewsOptions = {
  /** `redis://host:port/db`. Redis 7 or newer, and one server a service (see redis-scripts.ts). */
  url: string;
  /** Files in PEM, for `rediss://`. */
  tls?: { caFile?: string; certFile?: string; keyFile?: string };
  /** Told of every change; down is where it begins. */
  onStatus?: (status: 'up' | 'down') => void;
};

/**
 * Its connection may serve other small commands beside: they share their round trips with its
 * reads.
 */
export type RedisViews = Views & Upkeep & { readonly redis: Redis };

/**
 * Views in Redis. Resolves when Redis answers or after 1 s without it: it goes on trying for ever.
 * While Redis is away every method fails at once; one that it leaves unanswered fails after 1 s.
 */
export async function createRedisViews(options: RedisViewsOptions): Promise<RedisViews> {
  const tls = await readTls(options);
  const redis = connect(options.url, tls);
  const subscriber = connect(options.url, tls);
  const waiting = createReached((projection) => checkpoint(projection));
  const inTurn = createTurns(INTERSECTIONS_MAX);
  const status = watchStatus(redis, options.onStatus);
  // Finds a Redis that hangs while nobody asks it: the connection is given up and made anew.
  const pings = setInterval(() => {
    for (const client of [redis, subscriber])
      if (client.status === 'ready') client.ping().catch(ignore);
  }, ANSWER_MS).unref();
  subscriber.on('ready', () => {
    subscriber.psubscribe(checkpointChannels).then(waiting.recheck, ignore);
  });
  subscriber.on('pmessage', (_pattern: string, channel: string, sequence: string) => {
    waiting.heard(projectionOf(channel), Number(sequence));
  });
  await status.firstUp(ANSWER_MS);

  async function checkpoint(projection: string): Promise<number> {
    return Number((await answer(redis.get(keysOf(projection).checkpoint))) ?? 0);
  }

  return {
    redis,
    checkpoint,
    async write(projection, batch) {
      assertBatch(batch);
      const { keys, rest } = writeArguments(projection, batch);
      return answer(redis.writeViews(keys.length, ...keys, ...rest));
    },
    async read(projection, key) {
      return answer(redis.hget(keysOf(projection).views, key));
    },
    async readMany(projection, keys) {
      return keys.length === 0 ? [] : answer(redis.hmget(keysOf(projection).views, ...keys));
    },
    async page(projection, query) {
      assertPage(query);
      const { checkpoint, views, lists, listPrefix } = keysOf(projection);
      const { offset, limit } = query;
      const asked = [listPrefix, offset, limit, ...query.lists];
      const ask = () => answer(redis.pageOfViews(3, checkpoint, views, lists, ...asked));
      const [items, total, stands] = await (query.lists.length > 1 ? inTurn(ask) : ask());
      return { items, total, checkpoint: stands };
    },
    async counts(projection, names) {
      const { lists, listPrefix } = keysOf(projection);
      return answer(redis.countLists(1, lists, listPrefix, ...names));
    },
    async rank(projection, list, key) {
      const { lists, listPrefix } = keysOf(projection);
      return answer(redis.rankInList(1, lists, listPrefix, list, key));
    },
    async isOf(projection, logId) {
      return (await answer(redis.takeLog(1, projection, logId))) === 1;
    },
    ...createRedisUpkeep(redis, answer),
    reached: waiting.reached,
    isReachable: status.isUp,
    async [Symbol.asyncDispose]() {
      clearInterval(pings);
      status.stop();
      waiting.close();
      redis.disconnect();
      subscriber.disconnect();
    },
  };
}

/**
 * Fails fast: nothing queues while Redis is away, and a connection on which an answer is overdue is
 * given up with all that waits on it. A write goes alone: in a pipeline the reads beside it would
 * wait for its answer too.
 */
function connect(url: string, tls: object): Redis & ScriptCommands & UpkeepCommands {
  const redis = new Redis(url, {
    ...tls,
    scripts: { ...scripts, ...upkeepScripts },
    enableAutoPipelining: true,
    autoPipeliningIgnoredCommands: ['writeViews'],
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: ANSWER_MS,
    commandTimeout: ANSWER_MS,
    socketTimeout: ANSWER_MS,
    disconnectTimeout: 100,
    autoResubscribe: false,
    retryStrategy: (attempts) => Math.min(50 * attempts, RECONNECT_MS_MAX),
  });
  // Its errors are those of the commands and of the status; unheard, the client would print them.
  redis.on('error', () => endureErrors(redis));
  redis.on('connect', () => endureErrors(redis));
  return redis as Redis & ScriptCommands & UpkeepCommands;
}

/**
 * The client hears the first error of a connection alone. By TLS there may be one more, of an alert
 * that comes behind it, and one that nobody hears would end the process.
 */
function endureErrors({ stream }: { stream?: Redis['stream'] }): void {
  if (stream?.listeners('error').includes(ignore) === false) stream.on('error', ignore);
}

/** As the client wants them: not the files, what is in them. */
async function readTls({ tls }: RedisViewsOptions): Promise<object> {
  if (tls === undefined) return {};
  const texts = { ca: tls.caFile, cert: tls.certFile, key: tls.keyFile };
  const read = Object.entries(texts).flatMap(([name, path]) =>
    path === undefined ? [] : [readFile(path, 'utf8').then((text) => [name, text] as const)],
  );
  return { tls: Object.fromEntries(await Promise.all(read)) };
}

/** Up from a connection's readiness to its end. */
function watchStatus(redis: Redis, onStatus: RedisViewsOptions['onStatus']) {
  let isUp = false;
  let isStopped = false;
  const change = (isNowUp: boolean) => () => {
    if (isNowUp === isUp) return;
    isUp = isNowUp;
    if (!isStopped) onStatus?.(isUp ? 'up' : 'down');
  };
  redis.on('ready', change(true));
  redis.on('close', change(false));
  return {
    isUp: () => isUp,
    async firstUp(timeoutMs: number): Promise<void> {
      await new Promise<void>((resolve) => {
        const timeout = setTimeout(resolve, timeoutMs);
        redis.once('ready', () => {
          clearTimeout(timeout);
          resolve();
        });
      });
    },
    stop() {
      isStopped = true;
    },
  };
}

/**
 * Answers by which Redis says that it cannot serve now; any other refusal is a bug of ours. A lost
 * connection, a time-out or a full queue is no ReplyError.
 */
const NOT_NOW = /^(LOADING|BUSY|READONLY|MASTERDOWN|OOM|MISCONF|NOREPLICAS|CLUSTERDOWN|TRYAGAIN)\b/;

async function answer<T>(command: Promise<T>): Promise<T> {
  try {
    return await command;
  } catch (error) {
    const isRefusal = error instanceof Error && error.name === 'ReplyError';
    if (isRefusal && !NOT_NOW.test(error.message)) throw error;
    throw new Unavailable('read-model', error);
  }
}

function ignore(): void {}

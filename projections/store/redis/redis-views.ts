import { readFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { Unavailable } from '#src/kernel/errors.ts';
import { createFairExecutor, type FairExecutor } from '#src/kernel/async/fair-executor.ts';
import { combineCalls } from '#src/kernel/async/combine-calls.ts';
import { everyTick } from '#src/kernel/async/ticks.ts';
import { within } from '#src/kernel/async/timeout.ts';
import { assertBatch, assertPage, pageMax } from '../limits.ts';
import { createCheckpointWaiters } from '../wait-for-checkpoint.ts';
import {
  checkpointChannels,
  keysOf,
  projectionOf,
  scripts,
  writeArguments,
  type ScriptCommands,
} from './scripts.ts';
import { createRedisMaintenance } from './maintenance.ts';
import { maintenanceScripts, type MaintenanceCommands } from './maintenance-scripts.ts';
import type { StoreMaintenance } from '../maintenance.ts';
import type { HeldView, Page, PageQuery, Views } from '../views.ts';

/** The port's limit for an answer. */
const ANSWER_MS = 1000;
const RECONNECT_MS_MAX = 500;
/**
 * Queued pages of several lists, which run one at a time: with 100,000 views some 30 ms each. The
 * lists' owner is what is before the first slash of their names: an organization.
 */
const INTERSECTIONS = { places: 60, placesPerOwner: 30 };

/** What reads of one turn of the event loop combine to: at most 2 ms of Redis' time. */
const READS_MAX = 100;
const PAGES_MAX = 20;
/** A page of more rows is read alone: combined pages have no more rows than one may have. */
const ROWS_MAX = pageMax / PAGES_MAX;

export type RedisViewsOptions = {
  /** `redis://host:port/db`. Redis 7 or newer, and one server per service (see scripts.ts). */
  url: string;
  /** Files in PEM, for `rediss://`. */
  tls?: { caFile?: string; certFile?: string; keyFile?: string };
  /** The limit for an answer, a connection attempt and a silent connection; by default 1 s. */
  answerMs?: number;
  /** Called at every change; the initial status is down. */
  onStatus?: (status: 'up' | 'down') => void;
};

export type RedisViews = Views &
  StoreMaintenance & {
    /** The connection, for other small commands. */
    readonly redis: Redis;
    /**
     * Runs the work at the end of the event loop's turn: its commands and the reads of views are
     * one write.
     */
    readonly atTurnEnd: (work: () => void) => void;
  };

/**
 * Views in Redis. Resolves when Redis answers, at the latest after 1 s; it reconnects for ever.
 * Without a connection every method fails at once; a call without an answer fails after 1 s.
 */
export async function createRedisViews(options: RedisViewsOptions): Promise<RedisViews> {
  const tls = await readTls(options);
  const { url, answerMs = ANSWER_MS } = options;
  const redis = connect(url, tls, answerMs);
  const subscriber = connect(url, tls, answerMs);
  const waiting = createCheckpointWaiters((projection) => checkpoint(projection));
  const status = watchStatus(redis, options.onStatus);
  // Detects a Redis that hangs while no command is sent: the client closes and reconnects.
  const pings = everyTick(answerMs, () => {
    for (const client of [redis, subscriber])
      if (client.status === 'ready') client.ping().catch(ignore);
  });
  subscriber.on('ready', () => {
    subscriber.psubscribe(checkpointChannels).then(waiting.recheck, ignore);
  });
  subscriber.on('pmessage', (_pattern: string, channel: string, sequence: string) => {
    waiting.notify(projectionOf(channel), Number(sequence));
  });
  await status.firstUp(answerMs);

  const atTurnEnd = createTurnEnd(redis);

  const checkpoints = combineCalls<string, number>(
    async (_, asked) => {
      const keys = asked.map((projection) => keysOf(projection).checkpoint);
      return (await answer(redis.mget(...keys))).map(Number);
    },
    READS_MAX,
    atTurnEnd,
  );
  const checkpoint = (projection: string) => checkpoints('', projection);

  return {
    redis,
    atTurnEnd,
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
    ...createCombinedReads(redis, atTurnEnd),
    async counts(projection, names) {
      const { lists, listPrefix } = keysOf(projection);
      return answer(redis.countLists(1, lists, listPrefix, ...names));
    },
    async rank(projection, list, key) {
      const { lists, listPrefix } = keysOf(projection);
      return answer(redis.rankInList(1, lists, listPrefix, list, key));
    },
    async isBuiltFrom(projection, logId) {
      return (await answer(redis.bindStore(1, projection, logId))) === 1;
    },
    ...createRedisMaintenance(redis, answer),
    waitForCheckpoint: waiting.waitForCheckpoint,
    isReachable: status.isUp,
    async [Symbol.asyncDispose]() {
      pings[Symbol.dispose]();
      status.stop();
      waiting.close();
      redis.disconnect();
      subscriber.disconnect();
    },
  };
}

/** Collects the work of a turn, and runs it while the connection holds its writes back. */
function createTurnEnd(redis: Redis): RedisViews['atTurnEnd'] {
  let due: (() => void)[] = [];
  function run(): void {
    const works = due;
    due = [];
    // Absent until the client connects; then commands fail.
    const { stream } = redis as { stream?: Redis['stream'] };
    stream?.cork();
    try {
      for (const work of works) work();
    } finally {
      stream?.uncork();
    }
  }
  return (work) => {
    if (due.push(work) === 1) setImmediate(run);
  };
}

/** The reads that are combined, and the pages that are not. */
function createCombinedReads(
  redis: ScriptCommands,
  atTurnEnd: RedisViews['atTurnEnd'],
): Pick<Views, 'readWithCheckpoint' | 'page'> {
  const intersections = createFairExecutor(INTERSECTIONS, 'read-model');
  const readWithCheckpoint = combineCalls<string, HeldView>(
    (projection, keys) => readTogether(redis, projection, keys),
    READS_MAX,
    atTurnEnd,
  );
  const combinedPage = combineCalls<PageQuery, Page>(
    (projection, queries) => readPages(redis, projection, queries),
    PAGES_MAX,
    atTurnEnd,
  );
  return {
    readWithCheckpoint,
    async page(projection, query) {
      assertPage(query);
      const { lists, limit } = query;
      if (lists.length > 1) return intersection(redis, intersections, projection, query);
      if (limit > ROWS_MAX) return (await readPages(redis, projection, [query]))[0] as Page;
      return combinedPage(projection, query);
    },
  };
}

async function readTogether(
  redis: ScriptCommands,
  projection: string,
  keys: readonly string[],
): Promise<HeldView[]> {
  const { checkpoint, views } = keysOf(projection);
  const [stands, texts] = await answer(redis.readViews(2, checkpoint, views, ...keys));
  return texts.map((view) => ({ view, checkpoint: Number(stands) }));
}

/** Pages of one list each. */
async function readPages(
  redis: ScriptCommands,
  projection: string,
  queries: readonly PageQuery[],
): Promise<Page[]> {
  const { checkpoint, views, lists, listPrefix } = keysOf(projection);
  const asked = [checkpoint, views, lists, listPrefix] as (string | number)[];
  for (const {
    lists: [list = ''],
    offset,
    limit,
  } of queries)
    asked.push(list, offset, limit);
  const [stands, ...pages] = await answer(redis.pagesOfLists(3, ...asked));
  return queries.map((_, at) => ({
    items: pages[2 * at] as string,
    total: pages[2 * at + 1] as number,
    checkpoint: stands,
  }));
}

async function intersection(
  redis: ScriptCommands,
  inTurn: FairExecutor,
  projection: string,
  { lists: names, offset, limit }: PageQuery,
): Promise<Page> {
  const { checkpoint, views, lists, listPrefix } = keysOf(projection);
  const asked = [listPrefix, offset, limit, ...names];
  const [owner = ''] = names[0]?.split('/', 1) ?? [];
  const ask = () => answer(redis.pageOfIntersection(3, checkpoint, views, lists, ...asked));
  const [items, total, stands] = await inTurn(owner, ask);
  return { items, total, checkpoint: stands };
}

/**
 * Fails fast: no command is queued without a connection, and a connection with an overdue answer is
 * closed with all its pending commands. Writes are not pipelined: reads in the same pipeline would
 * wait for the write. Neither are combined calls, which are one write anyway.
 */
function connect(
  url: string,
  tls: object,
  answerMs: number,
): Redis & ScriptCommands & MaintenanceCommands {
  const redis = new Redis(url, {
    ...tls,
    scripts: { ...scripts, ...maintenanceScripts },
    enableAutoPipelining: true,
    autoPipeliningIgnoredCommands: ['writeViews', 'readViews', 'pagesOfLists', 'takeUnits'],
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: answerMs,
    commandTimeout: answerMs,
    socketTimeout: answerMs,
    disconnectTimeout: 100,
    autoResubscribe: false,
    retryStrategy: (attempts) => Math.min(50 * attempts, RECONNECT_MS_MAX),
  });
  // Commands and the status report the errors; without a listener the client would print them.
  redis.on('error', () => endureErrors(redis));
  redis.on('connect', () => endureErrors(redis));
  return redis as Redis & ScriptCommands & MaintenanceCommands;
}

/**
 * The client listens only to the first error of a connection. With TLS an alert may cause a second
 * one, and an error without a listener would end the process.
 */
function endureErrors({ stream }: { stream?: Redis['stream'] }): void {
  if (stream?.listeners('error').includes(ignore) === false) stream.on('error', ignore);
}

/** The client's TLS options: the contents of the files. */
async function readTls({ tls }: RedisViewsOptions): Promise<object> {
  if (tls === undefined) return {};
  const texts = { ca: tls.caFile, cert: tls.certFile, key: tls.keyFile };
  const read = Object.entries(texts).flatMap(([name, path]) =>
    path === undefined ? [] : [readFile(path, 'utf8').then((text) => [name, text] as const)],
  );
  return { tls: Object.fromEntries(await Promise.all(read)) };
}

/** Tracks the status: up from a connection's `ready` to its `close`. */
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
      const { promise: ready, resolve } = Promise.withResolvers<void>();
      redis.once('ready', () => resolve());
      await within(timeoutMs, ready, () => undefined);
    },
    stop() {
      isStopped = true;
    },
  };
}

/**
 * Redis errors that mean it cannot serve now; any other ReplyError is a bug of this service. A lost
 * connection, a time-out or a full queue is no ReplyError.
 */
const UNAVAILABLE_REPLY =
  /^(LOADING|BUSY|READONLY|MASTERDOWN|OOM|MISCONF|NOREPLICAS|CLUSTERDOWN|TRYAGAIN)\b/;

async function answer<T>(command: Promise<T>): Promise<T> {
  try {
    return await command;
  } catch (error) {
    const isRefusal = error instanceof Error && error.name === 'ReplyError';
    if (isRefusal && !UNAVAILABLE_REPLY.test(error.message)) throw error;
    throw new Unavailable('read-model', error);
  }
}

function ignore(): void {}

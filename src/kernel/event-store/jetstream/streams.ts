import {
  JetStreamApiError,
  type JetStreamManager,
  type StreamConfig,
  type StreamInfo,
} from '@nats-io/jetstream';
import { again, retry } from '#src/kernel/async/retry.ts';
import { isForbidden, isOutage } from './request.ts';
import { isShortOfServers } from './replicas.ts';
import { differences, streamSpecs, incompatibilityOf, type StreamSpec } from './stream-config.ts';

const RETRY_MS = 100;
/** Error code: the stream exists with another configuration. */
const NAME_IN_USE = 10058;
const STREAM_NOT_FOUND = 10059;

export type PrepareOptions = {
  withinMs: number;
  /** Replicas of a new stream; an existing stream keeps its number. */
  replicas: number;
  /** false: wait until another process creates them. */
  makes: boolean;
  /** Greatest size of streams that have one; absent: as they are, or unlimited. */
  sizedBytes?: number;
};

/**
 * Creates the streams or updates them; several processes may do so concurrently. Waits until
 * JetStream is ready, which takes a while after the server accepts connections, and until it has
 * the servers for all replicas.
 * @throws Error if that takes too long, or an existing stream is incompatible
 */
export async function prepareStreams(
  jsm: JetStreamManager,
  options: PrepareOptions,
): Promise<void> {
  const deadline = performance.now() + options.withinMs;
  try {
    for (const plan of streamSpecs) {
      const retried = {
        withinMs: deadline - performance.now(),
        pauseMs: () => RETRY_MS,
        isTransient: (error: unknown) => isOutage(error) || isShortOfServers(error),
        onExhausted: () => new Error(STREAMS_MISSING),
      };
      await retry(retried, async () => (await prepareStream(jsm, plan, options)) || again);
    }
  } catch (error) {
    throw explained(error, options);
  }
}

const STREAMS_MISSING =
  'the event store has no streams yet: a process with the role api creates them, ' +
  'if its NATS user may';

function explained(error: unknown, { withinMs, replicas }: PrepareOptions): unknown {
  const within = `within ${Math.round(withinMs)} ms`;
  if (isShortOfServers(error))
    return new Error(
      `too few NATS servers for ${replicas} replicas ${within}; NATS_REPLICAS sets fewer`,
      { cause: error },
    );
  if (!isOutage(error)) return error;
  return new Error(`JetStream is not ready ${within}; is it enabled on the NATS server?`, {
    cause: error,
  });
}

/** The state of a wanted stream; null: it does not exist. */
export type StreamStatus = {
  name: string;
  info: StreamInfo | null;
  /** Settings that `prepareStreams` corrects. */
  differs: readonly string[];
  /** Settings that cannot be corrected. */
  unfit: readonly string[];
};

/** The state of the streams, for checks of an installation. Changes nothing. */
export async function examineStreams(jsm: JetStreamManager): Promise<StreamStatus[]> {
  const standings: StreamStatus[] = [];
  for (const plan of streamSpecs) {
    const { name } = plan.wanted;
    try {
      const info = await jsm.streams.info(name);
      const unfit = incompatibilityOf(info.config, plan);
      standings.push({ name, info, unfit, differs: differences(info.config, plan.wanted) });
    } catch (error) {
      if (!(error instanceof JetStreamApiError) || error.code !== STREAM_NOT_FOUND) throw error;
      standings.push({ name, info: null, unfit: [], differs: [] });
    }
  }
  return standings;
}

/** False if the stream does not exist and is not to be created here. */
async function prepareStream(
  jsm: JetStreamManager,
  plan: StreamSpec,
  options: PrepareOptions,
): Promise<boolean> {
  const { makes } = options;
  const { name } = plan.wanted;
  const config = await configOf(jsm, name);
  if (config === null && makes) {
    try {
      await add(jsm, plan, options);
      return true;
    } catch (error) {
      // Another process was first, with other settings.
      if (!(error instanceof JetStreamApiError) || error.code !== NAME_IN_USE) throw error;
      return prepareStream(jsm, plan, options);
    }
  }
  if (config === null) return false;
  refuseUnfit(config, plan);
  const unlike = differences(config, plan.wanted);
  if (makes && unlike.length > 0) await change(jsm, plan.wanted, unlike);
  if (makes && plan.isSized === true) await resize(jsm, config, options.sizedBytes);
  return true;
}

/** What is left of a stream's size where the server has no room for the wanted one. */
const SIZE_MIN = 16 * 1024 ** 2;

/** Creates a stream. One of a size gets half of it, and again half, until the server has room. */
async function add(
  jsm: JetStreamManager,
  { wanted, isSized }: StreamSpec,
  { replicas, sizedBytes }: PrepareOptions,
): Promise<void> {
  const config = { ...wanted, num_replicas: replicas };
  if (isSized !== true || sizedBytes === undefined) return void (await jsm.streams.add(config));
  for (let bytes = sizedBytes; ; bytes = Math.floor(bytes / 2))
    try {
      return void (await jsm.streams.add({ ...config, max_bytes: bytes }));
    } catch (error) {
      if (!isShortOfStorage(error) || bytes / 2 < SIZE_MIN) throw error;
    }
}

/** Gives a stream the wanted size; it keeps its own if the server has no room, or refuses. */
async function resize(
  jsm: JetStreamManager,
  { name, max_bytes: bytes }: StreamConfig,
  sizedBytes: number | undefined,
): Promise<void> {
  if (sizedBytes === undefined || sizedBytes === bytes) return;
  try {
    await jsm.streams.update(name, { max_bytes: sizedBytes });
  } catch (error) {
    if (!(error instanceof JetStreamApiError) && !isForbidden(error)) throw error;
  }
}

/** Whether the server, or each one of a cluster, has not as much storage left as is reserved. */
function isShortOfStorage(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.message.includes('storage');
}

async function configOf(jsm: JetStreamManager, name: string): Promise<StreamConfig | null> {
  try {
    return (await jsm.streams.info(name)).config;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND) return null;
    throw error;
  }
}

/** @throws Error if this process's NATS user may not change streams */
async function change(
  jsm: JetStreamManager,
  wanted: StreamSpec['wanted'],
  unlike: readonly string[],
) {
  try {
    await jsm.streams.update(wanted.name, wanted);
  } catch (error) {
    if (!isForbidden(error)) throw error;
    const differs = `stream ${wanted.name} needs other settings: ${unlike.join('; ')}`;
    throw new Error(`${differs}. This NATS user may not change them: run bss doctor --fix`, {
      cause: error,
    });
  }
}

function refuseUnfit(config: StreamConfig, plan: StreamSpec): void {
  const unfit = incompatibilityOf(config, plan);
  if (unfit.length > 0)
    throw new Error(`stream ${plan.wanted.name} exists and is incompatible: ${unfit.join('; ')}`);
}

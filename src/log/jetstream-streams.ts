import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import {
  JetStreamApiError,
  StoreCompression,
  type JetStreamManager,
  type StreamConfig,
  type StreamInfo,
} from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import {
  ADVISORY_STREAM,
  ADVISORY_SUBJECTS,
  ARCHIVE_STREAM,
  EVENTS_STREAM,
  EVENTS_SUBJECTS,
  PARKED_STREAM,
  PARKED_SUBJECTS,
  PUBLIC_REPUBLISH,
  PUBLIC_STREAM,
  PUBLIC_SUBJECTS,
  REPUBLISH,
  TIMERS_STREAM,
  TIMERS_SUBJECTS,
} from '#events/subjects.ts';
import { isForbidden, isOutage } from './jetstream-ask.ts';
import { isShortOfServers } from './jetstream-replicas.ts';

const DAY_MS = 24 * 60 * 60_000;
const RETRY_MS = 100;
/**
 * Beyond it the oldest go. So many are one mistake of a projection's code, which its next version's
 * rebuild makes good.
 */
const PARKED_MAX = 100_000;
/** The stream exists with another configuration. */
const NAME_IN_USE = 10058;
const STREAM_NOT_FOUND = 10059;

/**
 * `wanted` is set, and put right where it differs. `fixed` is what an existing stream must have
 * already: it cannot be changed, or the stream may have lost or forged something meanwhile.
 */
type Plan = {
  wanted: Partial<StreamConfig> & { name: string };
  fixed: Partial<StreamConfig>;
};

const unlimited = { max_msgs: -1, max_bytes: -1, max_age: 0, max_msgs_per_subject: -1 };

const plans: Plan[] = [
  {
    wanted: {
      name: EVENTS_STREAM,
      subjects: EVENTS_SUBJECTS,
      storage: 'file',
      deny_delete: true,
      deny_purge: true,
      allow_atomic: true,
      allow_direct: true,
      republish: REPUBLISH,
      duplicate_window: nanos(120_000),
    },
    fixed: {
      storage: 'file',
      retention: 'limits',
      deny_delete: true,
      deny_purge: true,
      allow_msg_ttl: false,
      allow_msg_schedules: false,
      ...unlimited,
    },
  },
  {
    // Made again of EVENTS by whoever lets organizations in, should it be lost.
    wanted: {
      name: PUBLIC_STREAM,
      subjects: PUBLIC_SUBJECTS,
      storage: 'file',
      deny_delete: true,
      deny_purge: true,
      republish: PUBLIC_REPUBLISH,
    },
    fixed: { storage: 'file', retention: 'limits', ...unlimited },
  },
  {
    // Schedules forbid deny_purge, hence a stream of their own.
    wanted: {
      name: TIMERS_STREAM,
      subjects: TIMERS_SUBJECTS,
      storage: 'file',
      discard: 'old',
      allow_msg_schedules: true,
      allow_msg_ttl: true,
    },
    fixed: { storage: 'file', retention: 'limits' },
  },
  {
    wanted: {
      name: ADVISORY_STREAM,
      subjects: ADVISORY_SUBJECTS,
      storage: 'file',
      allow_direct: true,
      max_age: nanos(30 * DAY_MS),
    },
    fixed: { storage: 'file', retention: 'limits' },
  },
  {
    wanted: {
      name: PARKED_STREAM,
      subjects: PARKED_SUBJECTS,
      storage: 'file',
      discard: 'old',
      allow_direct: true,
      max_msgs_per_subject: 1,
      max_msgs: PARKED_MAX,
    },
    fixed: { storage: 'file', retention: 'limits' },
  },
];

/**
 * A compressed copy of EVENTS with the same sequences and times, which the server keeps up behind
 * it: whoever reads much reads there. No append waits for it, but the disk has a second write. The
 * server has such a copy answer direct reads of EVENTS, too, as soon as those are allowed, and it
 * lags; `hasArchive` says where that has to be minded.
 */
const archive: Plan = {
  wanted: {
    name: ARCHIVE_STREAM,
    mirror: { name: EVENTS_STREAM },
    storage: 'file',
    compression: StoreCompression.S2,
    deny_delete: true,
    deny_purge: true,
    allow_direct: true,
    mirror_direct: true,
  },
  fixed: {
    storage: 'file',
    retention: 'limits',
    deny_delete: true,
    deny_purge: true,
    ...unlimited,
  },
};

export type PrepareOptions = {
  withinMs: number;
  hasArchive: boolean;
  /** Copies of a stream that is made; one that is there keeps its number. */
  replicas: number;
  /** false: whoever else makes them is waited for. */
  makes: boolean;
};

/**
 * Makes the streams, or puts them right; several processes may do so at once. Waits until JetStream
 * is ready, which it is some time after the server takes connections, and has the servers for all
 * copies.
 * @throws Error where that takes too long, or an existing stream cannot serve
 */
export async function prepareStreams(
  jsm: JetStreamManager,
  options: PrepareOptions,
): Promise<void> {
  const deadline = performance.now() + options.withinMs;
  for (const plan of options.hasArchive ? [...plans, archive] : plans) {
    for (;;) {
      try {
        if (await prepareStream(jsm, plan, options)) break;
        if (performance.now() > deadline) throw new Error(NOBODY_MADE_IT);
      } catch (error) {
        const isEarly = isOutage(error) || isShortOfServers(error);
        if (!isEarly || performance.now() > deadline) throw explained(error, options);
      }
      await delay(RETRY_MS);
    }
  }
}

const NOBODY_MADE_IT =
  'there is no service’s log yet; a process with the role api makes it, where NATS lets it';

function explained(error: unknown, { withinMs, replicas }: PrepareOptions): unknown {
  const within = `within ${Math.round(withinMs)} ms`;
  if (isShortOfServers(error))
    return new Error(
      `no servers for ${replicas} copies of a stream ${within}; NATS_REPLICAS asks for fewer`,
      { cause: error },
    );
  if (!isOutage(error)) return error;
  return new Error(`JetStream is not ready ${within}; is the server run with it?`, {
    cause: error,
  });
}

/** Whether the log has an archive, whoever made it. */
export async function hasArchiveStream(jsm: JetStreamManager): Promise<boolean> {
  return (await configOf(jsm, ARCHIVE_STREAM)) !== null;
}

/** A stream that is wanted, as it is; null: it is not there. */
export type StreamStanding = {
  name: string;
  info: StreamInfo | null;
  /** Settings that `prepareStreams` puts right. */
  differs: readonly string[];
  /** Settings that nothing puts right. */
  unfit: readonly string[];
};

/** How the streams stand, for who examines an installation. Changes nothing. */
export async function examineStreams(
  jsm: JetStreamManager,
  hasArchive: boolean,
): Promise<StreamStanding[]> {
  const standings: StreamStanding[] = [];
  for (const plan of hasArchive ? [...plans, archive] : plans) {
    const { name } = plan.wanted;
    try {
      const info = await jsm.streams.info(name);
      const unfit = unfitnessOf(info.config, plan);
      standings.push({ name, info, unfit, differs: differences(info.config, plan.wanted) });
    } catch (error) {
      if (!(error instanceof JetStreamApiError) || error.code !== STREAM_NOT_FOUND) throw error;
      standings.push({ name, info: null, unfit: [], differs: [] });
    }
  }
  return standings;
}

/** False where it is not there and not to be made here. */
async function prepareStream(
  jsm: JetStreamManager,
  plan: Plan,
  options: PrepareOptions,
): Promise<boolean> {
  const { replicas, makes } = options;
  const { name } = plan.wanted;
  const config = await configOf(jsm, name);
  if (config === null && makes) {
    try {
      await jsm.streams.add({ ...plan.wanted, num_replicas: replicas });
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
  return true;
}

async function configOf(jsm: JetStreamManager, name: string): Promise<StreamConfig | null> {
  try {
    return (await jsm.streams.info(name)).config;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND) return null;
    throw error;
  }
}

/** @throws Error where this process's user of NATS may not change streams */
async function change(jsm: JetStreamManager, wanted: Plan['wanted'], unlike: readonly string[]) {
  try {
    await jsm.streams.update(wanted.name, wanted);
  } catch (error) {
    if (!isForbidden(error)) throw error;
    const differs = `stream ${wanted.name} is not as this version wants it: ${unlike.join('; ')}`;
    throw new Error(`${differs}. Its user may not change it: bss doctor --fix does`, {
      cause: error,
    });
  }
}

function refuseUnfit(config: StreamConfig, plan: Plan): void {
  const unfit = unfitnessOf(config, plan);
  if (unfit.length > 0)
    throw new Error(`stream ${plan.wanted.name} exists and cannot serve: ${unfit.join('; ')}`);
}

function unfitnessOf(config: StreamConfig, { wanted: { mirror }, fixed }: Plan): string[] {
  const unfit = differences(config, fixed);
  const of = config.mirror?.name;
  if (of !== mirror?.name) unfit.push(of === undefined ? 'it is no mirror' : `it mirrors ${of}`);
  if ((config.sources?.length ?? 0) > 0) unfit.push('it has sources');
  if (config.subject_transform !== undefined) unfit.push('it transforms subjects');
  return unfit;
}

/** What of the wanted settings the configuration has otherwise; a setting left out is off. */
function differences(config: StreamConfig, wanted: Partial<StreamConfig>): string[] {
  const found = config as Record<string, unknown>;
  return Object.entries(wanted)
    .filter(([key, value]) => !isDeepStrictEqual(found[key] ?? false, value))
    .map(([key, value]) => `${key} is ${JSON.stringify(found[key])}, not ${JSON.stringify(value)}`);
}

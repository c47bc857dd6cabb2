import { isDeepStrictEqual } from 'node:util';
import { StoreCompression, type StreamConfig } from '@nats-io/jetstream';
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

/** What each stream of the log is to be like. */

const DAY_MS = 24 * 60 * 60_000;
/**
 * Beyond it the oldest go. So many are one mistake of a projection's code, which its next version's
 * rebuild makes good.
 */
const PARKED_MAX = 100_000;

/**
 * `wanted` is set, and put right where it differs. `fixed` is what an existing stream must have
 * already: it cannot be changed, or the stream may have lost or forged something meanwhile.
 */
export type StreamPlan = {
  wanted: Partial<StreamConfig> & { name: string };
  fixed: Partial<StreamConfig>;
};

const unlimited = { max_msgs: -1, max_bytes: -1, max_age: 0, max_msgs_per_subject: -1 };

const plans: StreamPlan[] = [
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
const archive: StreamPlan = {
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

/** In the order in which they are made. */
export function streamPlans({ hasArchive }: { hasArchive: boolean }): readonly StreamPlan[] {
  return hasArchive ? [...plans, archive] : plans;
}

/** What of an existing stream nothing puts right, so that it cannot serve. */
export function unfitnessOf(
  config: StreamConfig,
  { wanted: { mirror }, fixed }: StreamPlan,
): string[] {
  const unfit = differences(config, fixed);
  const of = config.mirror?.name;
  if (of !== mirror?.name) unfit.push(of === undefined ? 'it is no mirror' : `it mirrors ${of}`);
  if ((config.sources?.length ?? 0) > 0) unfit.push('it has sources');
  if (config.subject_transform !== undefined) unfit.push('it transforms subjects');
  return unfit;
}

/** What of the wanted settings the configuration has otherwise; a setting left out is off. */
export function differences(config: StreamConfig, wanted: Partial<StreamConfig>): string[] {
  const found = config as Record<string, unknown>;
  return Object.entries(wanted)
    .filter(([key, value]) => !isDeepStrictEqual(found[key] ?? false, value))
    .map(([key, value]) => `${key} is ${JSON.stringify(found[key])}, not ${JSON.stringify(value)}`);
}

import { isDeepStrictEqual } from 'node:util';
import type { StreamConfig } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { OBJECTS_STREAM, OBJECTS_SUBJECTS } from '#events/object-subjects.ts';
import {
  ADVISORY_STREAM,
  ADVISORY_SUBJECTS,
  DELIVERIES_STREAM,
  DELIVERIES_SUBJECTS,
  EVENTS_STREAM,
  EVENTS_SUBJECTS,
  DEAD_LETTERS_STREAM,
  DEAD_LETTER_SUBJECTS,
  PUBLIC_STREAM,
  PUBLIC_SUBJECTS,
  REPUBLISH,
  TIMERS_STREAM,
  TIMERS_SUBJECTS,
  WEBHOOKS_STREAM,
  WEBHOOKS_SUBJECTS,
} from '#events/subjects.ts';

/** The configuration of each stream. */

const DAY_MS = 24 * 60 * 60_000;
/**
 * The limit of dead letters of projections; beyond it the oldest are dropped. So many are one
 * mistake in a projection's code, which the rebuild of its next version repairs.
 */
const DEAD_LETTERS_MAX = 100_000;

/**
 * `wanted` is set at creation, and updated if it differs. `fixed` is required of an existing
 * stream: it cannot be changed, or the stream may have lost or forged messages meanwhile.
 *
 * No stream asks for `deny_purge`, so a new one has it off: sealed events are purged as a prefix,
 * by the one NATS user that may (deploy/nats.conf). A server never turns it off again, so a stream
 * that has it is taken as it is, and keeps all of its messages.
 */
export type StreamSpec = {
  wanted: Partial<StreamConfig> & { name: string };
  fixed: Partial<StreamConfig>;
  /** Whether its greatest size is configured (OBJECT_STORE_MAX_MB). */
  isSized?: true;
};

/** Attempts that are kept of each webhook; beyond it the oldest are dropped. */
const ATTEMPTS_PER_WEBHOOK_MAX = 500;
/**
 * Attempts that are kept of all webhooks together; beyond it the oldest are dropped. An attempt has
 * about 1 KiB, and 8 KiB at most (1,024 bytes of an answer, escaped), so the stream has about
 * 200 MiB then, and never more than 1.6 GiB. Not a bound in bytes: NATS would reserve those, and a
 * server without the room would refuse the stream, and with it the start of the service.
 */
const ATTEMPTS_MAX = 200_000;

const unlimited = { max_msgs: -1, max_bytes: -1, max_age: 0, max_msgs_per_subject: -1 };

/** In the order of their creation. */
export const streamSpecs: readonly StreamSpec[] = [
  {
    wanted: {
      name: EVENTS_STREAM,
      subjects: EVENTS_SUBJECTS,
      storage: 'file',
      deny_delete: true,
      allow_atomic: true,
      allow_direct: true,
      republish: REPUBLISH,
      duplicate_window: nanos(120_000),
    },
    fixed: {
      storage: 'file',
      retention: 'limits',
      deny_delete: true,
      deny_purge: false,
      allow_msg_ttl: false,
      allow_msg_schedules: false,
      ...unlimited,
    },
  },
  {
    // If this stream is lost, it is rebuilt from EVENTS by the process that admits organizations to
    // NATS.
    wanted: {
      name: PUBLIC_STREAM,
      subjects: PUBLIC_SUBJECTS,
      storage: 'file',
      deny_delete: true,
    },
    fixed: { storage: 'file', retention: 'limits', deny_purge: false, ...unlimited },
  },
  {
    // Not in EVENTS: a schedule's message is replaced, and no event may be.
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
      name: DEAD_LETTERS_STREAM,
      subjects: DEAD_LETTER_SUBJECTS,
      storage: 'file',
      discard: 'old',
      allow_direct: true,
      max_msgs_per_subject: 1,
      max_msgs: DEAD_LETTERS_MAX,
    },
    fixed: { storage: 'file', retention: 'limits' },
  },
  {
    // Chunks and heads of objects (kernel/objects). If it is full it refuses, and discards none.
    wanted: {
      name: OBJECTS_STREAM,
      subjects: OBJECTS_SUBJECTS,
      storage: 'file',
      discard: 'new',
      allow_direct: true,
      max_msgs_per_subject: 1,
    },
    fixed: { storage: 'file', retention: 'limits', max_msgs: -1, max_age: 0 },
    isSized: true,
  },
  {
    // One message for each webhook; each write names the one that it replaces.
    wanted: {
      name: WEBHOOKS_STREAM,
      subjects: WEBHOOKS_SUBJECTS,
      storage: 'file',
      allow_direct: true,
      max_msgs_per_subject: 1,
    },
    fixed: { storage: 'file', retention: 'limits', max_age: 0, max_msgs: -1 },
  },
  {
    wanted: {
      name: DELIVERIES_STREAM,
      subjects: DELIVERIES_SUBJECTS,
      storage: 'file',
      discard: 'old',
      allow_direct: true,
      max_age: nanos(7 * DAY_MS),
      max_msgs_per_subject: ATTEMPTS_PER_WEBHOOK_MAX,
      max_msgs: ATTEMPTS_MAX,
    },
    fixed: { storage: 'file', retention: 'limits' },
  },
];

/** Settings of an existing stream that cannot be corrected and make it unusable. */
export function incompatibilityOf(config: StreamConfig, { fixed }: StreamSpec): string[] {
  const unfit = differences(config, fixed);
  if (config.mirror !== undefined) unfit.push(`it mirrors ${config.mirror.name}`);
  if ((config.sources?.length ?? 0) > 0) unfit.push('it has sources');
  if (config.subject_transform !== undefined) unfit.push('it transforms subjects');
  return unfit;
}

/** Wanted settings in which the configuration differs; a setting left out counts as off. */
export function differences(config: StreamConfig, wanted: Partial<StreamConfig>): string[] {
  const found = config as Record<string, unknown>;
  return Object.entries(wanted)
    .filter(([key, value]) => !isDeepStrictEqual(found[key] ?? false, value ?? false))
    .map(([key, value]) => `${key} is ${JSON.stringify(found[key])}, not ${JSON.stringify(value)}`);
}

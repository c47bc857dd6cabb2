import { organizationSessions, waitingSessions } from '#projections/organization-sessions.ts';
import type { SessionRow } from '#projections/organization-sessions.ts';
import { projectionId } from '#projections/projection.ts';
import type { ReadMemoryUse } from '#projections/store/memory-use.ts';
import { readLeaks } from '#projections/store/queries.ts';
import type { Views } from '#projections/store/views.ts';
import { allWorkloads, workloads, workloadsInStatus } from '#projections/workloads.ts';
import { EVENTS_STREAM } from '#events/subjects.ts';
import { archiveLagMs } from '#src/kernel/event-store/archive-lag.ts';
import type { ReadStreamSizes, StreamSize } from '#src/kernel/event-store/stream-sizes.ts';
import type { DeadLetterStore } from '#src/kernel/messaging/dead-letters.ts';
import type { StoreUse } from '#src/kernel/objects/object-store.ts';
import type { Metrics } from '#src/kernel/telemetry/metrics.ts';
import { createOverdueCounter } from './overdue-sessions.ts';
import { poolCounters } from '../schemas/sessions.ts';

/** Metrics of the whole service: from the read model, and from the event store. */
export function registerServiceMetrics(
  metrics: Pick<Metrics, 'watch'>,
  parts: {
    views: Views;
    deadLetters: Pick<DeadLetterStore, 'list'>;
    readStreamSizes: ReadStreamSizes;
    readMemoryUse: ReadMemoryUse;
    readStoreUse: () => Promise<StoreUse | null>;
    isEventStoreConnected: () => boolean;
    now: () => number;
    queueTimeoutMs: number;
    readArchiveSize: () => Promise<{ bytes: number; events: number }>;
    retainEndedMs: number | null;
  },
): void {
  const { views, deadLetters, isEventStoreConnected, now } = parts;
  metrics.watch(['bss_part_reachable'], () => ({
    bss_part_reachable: { event_log: +isEventStoreConnected(), read_model: +views.isReachable() },
  }));
  metrics.watch(['bss_pool_size', 'bss_pool_browsers'], () => readPool(views));
  metrics.watch(['bss_queue_length', 'bss_queue_oldest_age_seconds'], () => readQueue(views, now));
  metrics.watch(['bss_leaked_browsers', 'bss_leaked_sessions'], async () => {
    const { browsers, sessions } = await readLeaks(views);
    return { bss_leaked_browsers: browsers, bss_leaked_sessions: sessions };
  });
  const countOverdue = createOverdueCounter(parts);
  metrics.watch(['bss_overdue_sessions'], async () => ({
    bss_overdue_sessions: await countOverdue(),
  }));
  metrics.watch(['bss_dead_letters'], async () => {
    const events = await deadLetters.list();
    const count = (kind: string) => events.filter((event) => event.kind === kind).length;
    return {
      bss_dead_letters: { projection: count('projection'), work_queue: count('work_queue') },
    };
  });
  const sizes = ['bss_stream_bytes', 'bss_stream_messages', 'bss_stream_subjects'] as const;
  metrics.watch([...sizes, 'bss_archive_lag_seconds'], async () => {
    const streams = await parts.readStreamSizes();
    const lagMs = archiveLagMs(streams[EVENTS_STREAM], parts.retainEndedMs, now());
    const lag = lagMs === null ? null : lagMs / 1000;
    return { ...presentStreams(streams), bss_archive_lag_seconds: lag };
  });
  metrics.watch(['bss_archive_bytes', 'bss_archive_events'], async () => {
    const { bytes, events } = await parts.readArchiveSize();
    return { bss_archive_bytes: bytes, bss_archive_events: events };
  });
  metrics.watch(['bss_object_store_used_share'], async () => {
    const use = await parts.readStoreUse();
    return { bss_object_store_used_share: use && use.bytes / use.maxBytes };
  });
  metrics.watch(['bss_redis_memory_bytes', 'bss_redis_memory_max_bytes'], async () => {
    const { usedBytes, maxBytes } = await parts.readMemoryUse();
    return { bss_redis_memory_bytes: usedBytes, bss_redis_memory_max_bytes: maxBytes };
  });
}

function presentStreams(sizes: Readonly<Record<string, StreamSize>>) {
  const each = (count: 'bytes' | 'messages' | 'subjects') =>
    Object.fromEntries(Object.entries(sizes).map(([name, size]) => [name, size[count]]));
  return {
    bss_stream_bytes: each('bytes'),
    bss_stream_messages: each('messages'),
    bss_stream_subjects: each('subjects'),
  };
}

async function readPool(views: Views) {
  const states = poolCounters.filter((name) => name !== 'total');
  const lists = [allWorkloads, ...states.map((state) => workloadsInStatus(state))];
  const [size = 0, ...counts] = await views.counts(projectionId(workloads), lists);
  const browsers = Object.fromEntries(states.map((state, at) => [state, counts[at] ?? 0]));
  return { bss_pool_size: size, bss_pool_browsers: browsers };
}

/** The session that waits longest is at the list's end. */
async function readQueue(views: Views, now: () => number) {
  const [length = 0] = await views.counts(projectionId(organizationSessions), [waitingSessions]);
  const query = { lists: [waitingSessions], offset: Math.max(0, length - 1), limit: 1 };
  const { items } = await views.page(projectionId(organizationSessions), query);
  const [oldest] = JSON.parse(`[${items}]`) as SessionRow[];
  const ageMs = oldest === undefined ? 0 : now() - Date.parse(oldest.created_at);
  return { bss_queue_length: length, bss_queue_oldest_age_seconds: Math.max(0, ageMs) / 1000 };
}

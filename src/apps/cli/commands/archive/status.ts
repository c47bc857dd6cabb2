import { EVENTS_STREAM } from '#events/subjects.ts';
import type { Archive } from '#src/features/archive/archive.ts';
import { whoHoldsBack } from '#src/features/archive/archivist/archive-run.ts';
import { ServiceNotFoundError } from '#src/start/find-service.ts';
import type { ArchivePlace } from '#src/kernel/config/archive.ts';
import { archiveLagMs } from '#src/kernel/event-store/archive-lag.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { Command, CommandSession } from '../../command.ts';
import { formatDuration, formatTable } from '../../output.ts';
import { formatNumber } from '../../progress-line.ts';

export const showArchive: Command = {
  read: () => async (session) => {
    const archive = await session.openArchive();
    await archive.refresh();
    const json = await statusOf(session, archive);
    return { json, text: describe(json) };
  },
};

async function statusOf(session: CommandSession, archive: Archive) {
  const { context, config, readStreamSizes } = session;
  const { firstSequence, lastSequence } = await context.eventStore.info();
  const { [EVENTS_STREAM]: events } = await readStreamSizes();
  const now = context.now();
  const oldestAt = events?.oldestAt ?? null;
  const segments = archive.segments();
  const sum = (of: (segment: (typeof segments)[number]) => number) =>
    segments.reduce((all, segment) => all + of(segment), 0);
  return {
    place: placeText(config.archive.place),
    retain_ended_ms: config.archive.retainEndedMs,
    retain_events_max: config.archive.retainEventsMax,
    segments: segments.length,
    records: sum(({ records }) => records),
    sessions: sum(({ sessions }) => sessions),
    bytes: sum(({ bytes }) => bytes),
    raw_bytes: sum((segment) => segment.raw_bytes),
    last_sequence: archive.endSequence(),
    last_stored_at: archive.endTime(),
    sealed_at: segments.at(-1)?.sealed_at ?? null,
    event_store: {
      first_sequence: firstSequence,
      last_sequence: lastSequence,
      events: lastSequence - firstSequence + 1,
      oldest_at: oldestAt,
      oldest_age_ms: oldestAt === null ? null : now - Date.parse(oldestAt),
      /** How much longer than RETAIN_ENDED that is. */
      lag_ms: archiveLagMs(events, config.archive.retainEndedMs, now),
      held_back:
        archive.endSequence() < firstSequence
          ? null
          : await heldBack(session, archive.endSequence()),
    },
  };
}

type Status = Awaited<ReturnType<typeof statusOf>>;

function describe(status: Status): string {
  const { event_store: store } = status;
  const rows = [
    ['place', status.place],
    ['segments', formatNumber(status.segments)],
    ['events', `${formatNumber(status.records)}, up to ${status.last_sequence}`],
    ['sessions ended in it', formatNumber(status.sessions)],
    ['bytes', `${formatNumber(status.bytes)}, of ${formatNumber(status.raw_bytes)}`],
    ['newest event of', status.last_stored_at ?? '–'],
    ['last sealed', status.sealed_at ?? '–'],
    ['event store', `${store.first_sequence} to ${store.last_sequence}`],
    ['its events', `${formatNumber(store.events)}, of ${formatNumber(status.retain_events_max)}`],
    ['oldest event of', store.oldest_at ?? '–'],
    ['its age', store.oldest_age_ms === null ? '–' : formatDuration(store.oldest_age_ms)],
    ['longer than RETAIN_ENDED by', store.lag_ms === null ? '–' : formatDuration(store.lag_ms)],
    ['held back', store.held_back ?? '–'],
  ];
  return formatTable(['ARCHIVE', ''], rows).join('\n');
}

/** What keeps archived events in the event store; null: nothing. */
async function heldBack(
  { truncation, openViews }: CommandSession,
  upTo: number,
): Promise<string | null> {
  const views = await openViews().catch((error: unknown) => {
    // Without its address the read model is not asked.
    if (error instanceof ServiceNotFoundError) return null;
    throw error;
  });
  try {
    const found = await whoHoldsBack({ truncation, views }, upTo);
    return found ?? (views === null ? 'unknown: the read model was not asked' : null);
  } catch (error) {
    if (!(error instanceof Unavailable) || error.part !== 'read-model') throw error;
    return 'the read model does not answer';
  }
}

/** The place as ARCHIVE_URL names it. */
function placeText(place: ArchivePlace): string {
  return 'folder' in place ? place.folder : `s3://${place.bucket}/${place.prefix}`;
}

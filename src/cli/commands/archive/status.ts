import type { Archive } from '#src/archive/archive.ts';
import type { ArchivePlace } from '#src/config/archive.ts';
import type { Command, CommandSession } from '../../command.ts';
import { formatTable } from '../../output.ts';
import { formatNumber } from '../../progress-line.ts';

export const showArchive: Command = {
  name: 'archive status',
  summary: 'Show what the archive holds, and where the event store begins',
  options: {},
  read: () => async (session) => {
    const archive = await session.openArchive();
    await archive.refresh();
    const json = await statusOf(session, archive);
    return { json, text: describe(json) };
  },
};

async function statusOf({ context, config }: CommandSession, archive: Archive) {
  const { firstSequence, lastSequence } = await context.eventStore.info();
  const segments = archive.segments();
  const sum = (of: (segment: (typeof segments)[number]) => number) =>
    segments.reduce((all, segment) => all + of(segment), 0);
  return {
    place: placeText(config.archive.place),
    retain_ended_ms: config.archive.retainEndedMs,
    segments: segments.length,
    records: sum(({ records }) => records),
    sessions: sum(({ sessions }) => sessions),
    bytes: sum(({ bytes }) => bytes),
    raw_bytes: sum((segment) => segment.raw_bytes),
    last_sequence: archive.endSequence(),
    last_stored_at: archive.endTime(),
    sealed_at: segments.at(-1)?.sealed_at ?? null,
    event_store: { first_sequence: firstSequence, last_sequence: lastSequence },
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
  ];
  return formatTable(['ARCHIVE', ''], rows).join('\n');
}

/** The place as ARCHIVE_URL names it. */
function placeText(place: ArchivePlace): string {
  return 'folder' in place ? place.folder : `s3://${place.bucket}/${place.prefix}`;
}

import type { BlackBox } from '#events/session/black-box.ts';
import type { Actor } from '#events/envelope.ts';
import type { RecordedEvent } from '#events/events.ts';
import { isPublic, publicValue } from '#events/public-event.ts';
import { blackBoxIn, describeBlackBox } from '#src/kernel/history/describe-black-box.ts';
import { causesOf, type Link } from '#src/kernel/history/chain.ts';
import { describeEvent } from '#src/kernel/history/describe-event.ts';
import { fieldChanges } from '#src/kernel/history/field-changes.ts';
import type { HistoryPage, Step } from '#src/kernel/history/page.ts';
import { summaryOf, withoutUses, type Story } from '#src/kernel/history/story.ts';

/** An answer ends before this: each event has the session's state, which may be large. */
const LENGTH_MAX = 4 * 1024 * 1024;

/** A page of a history in JSON, as its organization gets it; shorter if its events are large. */
export function historyText({ steps, next }: HistoryPage): string {
  const texts: string[] = [];
  let length = 0;
  for (const step of steps) {
    const text = JSON.stringify(presentStep(step));
    length += text.length;
    if (texts.length > 0 && length > LENGTH_MAX) break;
    texts.push(text);
  }
  const cutAt = texts.length < steps.length ? steps[texts.length - 1] : undefined;
  return `{"events":[${texts.join(',')}],"next":${cutAt?.event.sequence ?? next}}`;
}

/** An event of a history as its organization gets it. */
function presentStep({ event, before, state, cause }: Step) {
  const { sequence, id, type, time, metadata } = event;
  const { kind } = event.aggregate;
  const shown = publicValue(kind, state) as object;
  const { causationId } = metadata;
  return {
    sequence,
    id,
    type,
    time,
    actor: metadata.actor,
    because_of:
      causationId === null
        ? null
        : { sequence: cause?.sequence ?? null, type: cause?.type ?? null, id: causationId },
    data: publicValue(kind, event.data),
    changes: fieldChanges(before === null ? {} : (publicValue(kind, before) as object), shown),
    state: shown,
  };
}

/**
 * Why a session is where it is, as its organization gets it: of browsers and servers the sentences
 * alone.
 */
export function presentWhy(story: Story, related: readonly RecordedEvent[], isWhole: boolean) {
  const counted = isWhole ? undefined : `more than ${story.count} events`;
  return {
    summary: summaryOf(story, counted),
    chain: causesOf(story.end, related).map(presentLink),
    black_box: presentBlackBox(blackBoxIn(story.events)),
    related: withoutUses(related).filter(isShown).map(presentRelated),
    complete: isWhole,
  };
}

function presentBlackBox(box: BlackBox | null) {
  if (box === null) return null;
  const { consoleErrors, failedRequests, exceptions, dialogs } = box;
  return {
    address: box.address ?? null,
    console_errors: consoleErrors ?? [],
    failed_requests: failedRequests ?? [],
    exceptions: exceptions ?? [],
    dialogs: dialogs ?? [],
    page_crashes: box.pageCrashes ?? 0,
    exit_code: box.exitCode ?? null,
    signal: box.signal ?? null,
    out_of_memory: box.outOfMemory ?? false,
    memory_peak_bytes: box.memoryPeakBytes ?? null,
    thumbnail: box.thumbnailBytes !== undefined,
    dropped: box.dropped ?? 0,
    told: describeBlackBox(box),
  };
}

function presentLink({ words, event }: Link) {
  if (event === null) return { sequence: null, sentence: words, actor: null, time: null };
  const { sequence, time } = event;
  return { sequence, sentence: words, actor: actorOf(event), time };
}

function presentRelated(event: RecordedEvent) {
  const { sequence, type, time } = event;
  return { sequence, type, sentence: describeEvent(event), actor: actorOf(event), time };
}

/** A state that was carried forward says nothing to an organization. */
function isShown({ type }: RecordedEvent): boolean {
  return isPublic(type) || (isOfFleet(type) && !type.endsWith('.carried-forward'));
}

/** Of the fleet's events the organization learns which part acted, and not who runs the service. */
function actorOf({ type, metadata: { actor } }: RecordedEvent): Actor {
  if (!isOfFleet(type)) return actor;
  const { kind, id } = actor;
  return { kind, id: kind === 'service' ? (id.split('/', 1)[0] ?? kind) : kind };
}

function isOfFleet(type: string): boolean {
  return type.startsWith('workload.') || type.startsWith('server.');
}

import { UnknownEvent } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import type { Webhook } from '#events/organization/webhook.ts';
import { filtersFor } from '#events/subjects.ts';
import type { FairSlots } from '#src/kernel/async/fair-slots.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { stopAtUnknown } from '#src/kernel/event-store/unreadable.ts';
import { isWanted } from '#src/features/webhooks/body.ts';
import { complete } from '#src/features/webhooks/complete-event.ts';

/** Events that are read in one turn, wanted or not; another webhook's turn is next. */
const SCAN_MAX = 500;
const BATCH_MAX = 100;
/** Sequences of one read of the event store: the next wanted event may be millions away. */
export const READ_SPAN = 50_000;
/** After so long a turn begins no further read. */
const TURN_MS = 1_000;

type Reading = {
  organizationId: string;
  webhook: Webhook;
  /** The sequence after which to begin. */
  after: number;
  /** Wanted events that may be read at most. */
  room: number;
  signal: AbortSignal;
};

/** The wanted events up to `position`; `isMore`: more may follow already. */
export type Read = { events: RecordedEvent[]; position: number; isMore: boolean };

/**
 * The next events that the webhook gets, as far as one turn comes. Those behind the event store's
 * border come from the archive. A malformed event, which no process can read, is left out.
 * @throws UnknownEvent if the first event is of a newer version: a newer process sends it, and goes
 *   on
 */
export async function readOn(
  { context: { eventStore }, readSlots }: { context: CommandContext; readSlots: FairSlots },
  reading: Reading,
): Promise<Read> {
  const { organizationId, after, signal } = reading;
  const end = await eventStore.lastSequence();
  if (end <= after) return { events: [], position: after, isMore: false };
  using _ = await (readSlots.acquire(organizationId, signal) ?? Promise.resolve(undefined));
  const until = performance.now() + TURN_MS;
  const turn: Turn = { events: [], position: after, scanned: 0 };
  try {
    while (turn.position < end && !signal.aborted) {
      const upTo = Math.min(end, turn.position + READ_SPAN);
      if (!(await readSpan(turn, eventStore, reading, upTo))) break;
      turn.position = upTo;
      if (performance.now() >= until || readSlots.isWanted()) break;
    }
  } catch (error) {
    // What comes before it is sent.
    if (!(error instanceof UnknownEvent) || turn.position === after) throw error;
  }
  const { events, position } = turn;
  return { events, position, isMore: position < end };
}

/** What a turn has read; all up to `position` is in `events` or not wanted. */
type Turn = { events: RecordedEvent[]; position: number; scanned: number };

/** Adds the events up to a sequence; false: the turn is full, or the signal has aborted. */
async function readSpan(
  turn: Turn,
  eventStore: EventStore,
  { organizationId, webhook, room, signal }: Reading,
  upTo: number,
): Promise<boolean> {
  const types = webhook.types.length === 0 ? [null] : webhook.types;
  const subjects = types.flatMap((type) => filtersFor(organizationId, type));
  const after = turn.position;
  const range = { subjects, after, upTo, includesArchive: true, batchMax: BATCH_MAX };
  for await (const batch of eventStore.read({ ...range, signal, onUnreadable: stopAtUnknown }))
    for (const event of batch) {
      turn.scanned += 1;
      turn.position = event.sequence;
      if (isWanted(webhook, event)) turn.events.push(event);
      if (turn.events.length >= room || turn.scanned >= SCAN_MAX) return false;
    }
  return !signal.aborted;
}

/** One event again; null: it cannot be read any more, or no process can read it. */
export async function readOne(
  eventStore: EventStore,
  organizationId: string,
  sequence: number,
): Promise<RecordedEvent | null> {
  const range = {
    subjects: filtersFor(organizationId, null),
    after: sequence - 1,
    upTo: sequence,
    includesArchive: true,
    onUnreadable: stopAtUnknown,
  };
  for await (const batch of eventStore.read(range))
    for (const event of batch) if (event.sequence === sequence) return complete(eventStore, event);
  return null;
}

/** The sequence of the event that added the webhook: what comes after it is sent. */
export async function startOf(
  { eventStore }: Pick<CommandContext, 'eventStore'>,
  organizationId: string,
  webhookId: string,
): Promise<number> {
  const types = new Set(['organization.webhook-added']);
  const organization = { kind: 'organization', organizationId } as const;
  for await (const event of eventStore.history<'organization'>(organization, { types }))
    if (event.type === 'organization.webhook-added' && event.data.webhookId === webhookId)
      return event.sequence;
  throw new RangeError(`no event added the webhook ${webhookId}`);
}

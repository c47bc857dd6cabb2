import { MalformedEvent } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import type { Webhook } from '#events/organization/webhook.ts';
import { filtersFor } from '#events/subjects.ts';
import type { FairSlots } from '#src/async/fair-slots.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import type { EventStore } from '#src/event-store/event-store.ts';
import { withState } from '#src/event-store/load-state.ts';
import { stopAtUnknown } from '#src/event-store/unreadable.ts';
import { isWanted } from '#src/webhooks/body.ts';

/** Events that are read in one go, wanted or not; another webhook's turn is next. */
const SCAN_MAX = 500;
const BATCH_MAX = 100;

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
 * The next events that the webhook gets. Those behind the event store's border come from the
 * archive. A malformed event, which no process can read, is left out.
 * @throws UnknownEvent at an event of a newer version: a newer process sends it, and goes on
 */
export async function readOn(
  { context: { eventStore }, readSlots }: { context: CommandContext; readSlots: FairSlots },
  { organizationId, webhook, after, room, signal }: Reading,
): Promise<Read> {
  const end = await eventStore.lastSequence();
  if (end <= after) return { events: [], position: after, isMore: false };
  using _ = await (readSlots.acquire(organizationId, signal) ?? Promise.resolve(undefined));
  const types = webhook.types.length === 0 ? [null] : webhook.types;
  const subjects = types.flatMap((type) => filtersFor(organizationId, type));
  const range = { subjects, after, upTo: end, includesArchive: true, batchMax: BATCH_MAX };
  const events: RecordedEvent[] = [];
  let [scanned, position] = [0, after];
  for await (const batch of eventStore.read({ ...range, signal, onUnreadable: stopAtUnknown }))
    for (const event of batch) {
      scanned += 1;
      position = event.sequence;
      if (isWanted(webhook, event)) events.push(event);
      if (events.length >= room || scanned >= SCAN_MAX) return { events, position, isMore: true };
    }
  return signal.aborted
    ? { events, position, isMore: true }
    : { events, position: end, isMore: false };
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

/** The event with its aggregate's state, as organizations get it. */
export async function complete(
  eventStore: EventStore,
  event: RecordedEvent,
): Promise<RecordedEvent> {
  try {
    return await withState(eventStore, event);
  } catch (error) {
    // A malformed history: the event is sent without a state.
    if (error instanceof MalformedEvent) return event;
    throw error;
  }
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

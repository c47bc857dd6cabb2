import type { Subscription } from '#src/roles/feed/subscription.ts';
import type { Feed, StreamRefusal, StreamRequest } from '#src/roles/feed/feed.ts';

/** A client of a feed in this process; it reads as fast as the test lets it. */
export type Listener = {
  /** Why the stream was refused; null: it is open. */
  refused: StreamRefusal | null;
  /** Sequences of the received events. */
  sequences(): number[];
  /** All received text. */
  text(): string;
  /** What a strict reader takes for events. */
  strictly(): StrictEvent[];
  /** The id to reconnect with. */
  lastId(): number;
  isEnded(): boolean;
  /** Takes the written bytes, then `bytes` more before it is full again. */
  take(bytes: number): void;
  /** Closes the connection. */
  leave(): void;
};

type StrictEvent = { event: string; data: string; id: string };

export type ListenerOptions = Partial<Omit<Subscription, 'organizationId'>> & {
  organizationId: string;
  begin?: StreamRequest['begin'];
  isAllowed?: StreamRequest['isAllowed'];
  /** Bytes it takes before it is full; default: any number. */
  room?: number;
};

export async function listen(feed: Feed, options: ListenerOptions): Promise<Listener> {
  const { organizationId, begin = 'now', isAllowed = () => true } = options;
  const { sessionId = null, types = [], labels = [], since = null } = options;
  let room = options.room ?? Infinity;
  let text = '';
  let position = NaN;
  let waiting = 0;
  let isEnded = false;
  let onDrain = (): void => undefined;
  let onClose = (): void => undefined;

  const refused = await feed.open({
    subscription: { organizationId, sessionId, types, labels, since },
    begin,
    isAllowed,
    openSink(after) {
      position = after;
      return {
        write(bytes) {
          if (isEnded) throw new Error('written to after its end');
          text += bytes.toString();
          waiting += bytes.length;
          return waiting < room;
        },
        end(lastBytes) {
          if (isEnded) throw new Error('ended twice');
          isEnded = true;
          text += lastBytes?.toString() ?? '';
        },
        onDrain: (listener) => void (onDrain = listener),
        onClose: (listener) => void (onClose = listener),
      };
    },
  });
  const sequences = () => [...text.matchAll(/^id: (\d+)\nevent: /gm)].map(([, id]) => Number(id));
  return {
    refused,
    sequences,
    text: () => text,
    strictly: () => readStrictly(text),
    lastId: () => sequences().at(-1) ?? position,
    isEnded: () => isEnded,
    take(bytes) {
      const wasFull = waiting >= room;
      [waiting, room] = [0, bytes];
      if (wasFull && !isEnded) onDrain();
    },
    leave: () => onClose(),
  };
}

/**
 * The events of a stream's text for a reader such as Python's httpx-sse 0.4: each blank line ends
 * an event if an id came at any time before, or a type, data or retry since the last blank line.
 * By the standard only data makes an event.
 */
function readStrictly(text: string): StrictEvent[] {
  const events: StrictEvent[] = [];
  let id = '';
  let block = { event: '', data: '', retry: '' };
  for (const line of text.split('\n').slice(0, -1)) {
    const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (line !== '') {
      if (field === 'id') id = value;
      else if (field !== '') block = { ...block, [field]: value };
      continue;
    }
    const { event, data, retry } = block;
    if (id + event + data + retry !== '') events.push({ event, data, id });
    block = { event: '', data: '', retry: '' };
  }
  return events;
}

import type { Subscription } from '#src/feed/subscription.ts';
import type { Feed, StreamRefusal, StreamRequest } from '#src/feed/feed.ts';

/** A client of a feed in this process; it reads as fast as the test lets it. */
export type Listener = {
  /** Why the stream was refused; null: it is open. */
  refused: StreamRefusal | null;
  /** Sequences of the received events. */
  sequences(): number[];
  /** All received text. */
  text(): string;
  /** The id to reconnect with. */
  lastId(): number;
  isEnded(): boolean;
  /** Takes the written bytes, then `bytes` more before it is full again. */
  take(bytes: number): void;
  /** Closes the connection. */
  leave(): void;
};

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
  let waiting = 0;
  let isEnded = false;
  let onDrain = (): void => undefined;
  let onClose = (): void => undefined;

  const refused = await feed.open({
    subscription: { organizationId, sessionId, types, labels, since },
    begin,
    isAllowed,
    openSink: () => ({
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
    }),
  });
  return {
    refused,
    sequences: () => [...text.matchAll(/^id: (\d+)\nevent: /gm)].map(([, id]) => Number(id)),
    text: () => text,
    lastId: () => Number([...text.matchAll(/^id: (\d+)$/gm)].at(-1)?.[1]),
    isEnded: () => isEnded,
    take(bytes) {
      const wasFull = waiting >= room;
      [waiting, room] = [0, bytes];
      if (wasFull && !isEnded) onDrain();
    },
    leave: () => onClose(),
  };
}

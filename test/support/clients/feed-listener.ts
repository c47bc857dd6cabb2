import type { Asked } from '#src/feed/subscription.ts';
import type { Feed, NotOpened, Opening } from '#src/feed/feed.ts';

/** One who listens to a feed in this process, and reads as fast as the test lets it. */
export type Listener = {
  /** Why it was not let in; null: it listens. */
  refused: NotOpened | null;
  /** Sequences of the events that have come. */
  sequences(): number[];
  /** All that has come, as it came. */
  text(): string;
  /** The id to come back with. */
  lastId(): number;
  isEnded(): boolean;
  /** Takes what has been written, and from now on so many bytes before it is full again. */
  take(bytes: number): void;
  /** Goes away without a word. */
  leave(): void;
};

export type ListenerOptions = Partial<Omit<Asked, 'organizationId'>> & {
  organizationId: string;
  begin?: Opening['begin'];
  isAllowed?: Opening['isAllowed'];
  /** Bytes that are taken before it is full; default: any number. */
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
    asked: { organizationId, sessionId, types, labels, since },
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

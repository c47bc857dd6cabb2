/**
 * A program of its own that only listens: event streams read with as little client as there can be,
 * and one subject of NATS. Its parent (`listeners-apart.ts`) tells it what, and asks what it heard.
 */
import { connectJetStream } from '#src/event-store/jetstream/connect.ts';
import { eventually } from '#test/support/service/service.ts';
import { clockMs, openRawStream, type RawStream } from './raw-stream.ts';

export type Order =
  | { do: 'open'; url: string; key: string; lastId: number; count: number }
  | { do: 'subscribe'; natsUrl: string; subject: string }
  /** What there was to hear, and which of it is asked about. */
  | { do: 'tell'; expected: number[]; probes: number[] };

export type Answer = {
  /** Streams that did not bring exactly what there was, in order. */
  wrong: number;
  /** By probe, when it came to each stream. */
  arrivals: number[][];
  /** When each message of the subject came, in the order of their numbers. */
  heard: number[];
};

const streams: RawStream[] = [];
const heard: number[] = [];

async function obey(order: Order): Promise<Answer | null> {
  if (order.do === 'open') {
    for (let one = 0; one < order.count; one += 1) {
      const stream = openRawStream(order.url, order.key, order.lastId);
      await stream.opened;
      streams.push(stream);
    }
    return null;
  }
  if (order.do === 'subscribe') {
    const { nc } = await connectJetStream({
      url: order.natsUrl,
      name: 'bench',
      makesStreams: false,
    });
    nc.subscribe(order.subject, {
      callback(_, message) {
        const at = clockMs();
        heard[Number.parseInt(message.string(), 10)] = at;
      },
    });
    await nc.flush();
    return null;
  }
  return tell(order.expected, order.probes);
}

async function tell(expected: number[], probes: number[]): Promise<Answer> {
  const last = expected.at(-1) ?? 0;
  const all = () => streams.every(({ sequences }) => (sequences.at(-1) ?? 0) >= last);
  // Who has not is told as one that is wrong.
  await eventually(all, 'every stream has the last event').catch(() => undefined);
  return {
    wrong: streams.filter(({ sequences }) => !isSame(upTo(sequences, last), expected)).length,
    arrivals: probes.map((probe) =>
      streams.flatMap((stream) => stream.arrivals[placeOf(stream, probe)] ?? []),
    ),
    heard,
  };
}

/** By halving: they came in order, or are wrong anyway. -1: it did not come. */
function placeOf({ sequences }: RawStream, sequence: number): number {
  let [low, high] = [0, sequences.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sequences[middle] ?? 0) < sequence) low = middle + 1;
    else high = middle;
  }
  return sequences[low] === sequence ? low : -1;
}

/** What came after the log was read is not judged. */
function upTo(sequences: readonly number[], last: number): number[] {
  return sequences.filter((sequence) => sequence <= last);
}

function isSame(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((value, index) => value === other[index]);
}

if (process.send !== undefined) {
  process.on('message', (order: Order) => {
    obey(order).then(
      (answer) => process.send?.({ answer }),
      (error: unknown) => process.send?.({ failure: String(error) }),
    );
  });
  process.once('disconnect', () => process.exit());
}

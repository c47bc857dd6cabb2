/**
 * A program that only listens: event streams read with a minimal client, and one subject of NATS.
 * Its parent (`listeners-apart.ts`) sends it the addresses and reads the results.
 */
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { eventually } from '#test/support/service/service.ts';
import { clockMs, openRawStream, type RawStream } from './raw-stream.ts';

export type Order =
  | { do: 'open'; url: string; key: string; lastId: number; count: number }
  | { do: 'subscribe'; natsUrl: string; subject: string }
  /** The expected sequences, and those whose arrival is reported. */
  | { do: 'tell'; expected: number[]; probes: number[] };

export type Answer = {
  /** Streams that did not deliver exactly the expected sequences in order. */
  wrong: number;
  /** By probe, its arrival at each stream. */
  arrivals: number[][];
  /** The arrival of each message of the subject, in the order of their numbers. */
  received: number[];
};

const streams: RawStream[] = [];
const received: number[] = [];

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
        received[Number.parseInt(message.string(), 10)] = at;
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
  // A stream without the last event is counted as wrong.
  await eventually(all, 'every stream has the last event').catch(() => undefined);
  return {
    wrong: streams.filter(({ sequences }) => !isSame(upTo(sequences, last), expected)).length,
    arrivals: probes.map((probe) =>
      streams.flatMap((stream) => stream.arrivals[placeOf(stream, probe)] ?? []),
    ),
    received,
  };
}

/** Binary search: the sequences are in order, or the stream is wrong anyway. -1: not received. */
function placeOf({ sequences }: RawStream, sequence: number): number {
  let [low, high] = [0, sequences.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sequences[middle] ?? 0) < sequence) low = middle + 1;
    else high = middle;
  }
  return sequences[low] === sequence ? low : -1;
}

/** Events after the read of the event store are not checked. */
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

import { fileURLToPath } from 'node:url';
import { runApart } from '../run-apart.ts';
import { atMost, type Verdict } from '../samples.ts';

/** What one event costs at each step: microseconds and allocated bytes. */
export type EventCosts = {
  events: number;
  /** The mean size of a message's body. */
  bytes: number;
  steps: Record<string, { us: number; bytes: number }>;
};

const APART = fileURLToPath(new URL('events-apart.ts', import.meta.url));
/** No collection of new objects within a round: all that a round allocates is counted. */
const HEAP = ['--expose-gc', '--min-semi-space-size=64', '--max-semi-space-size=64'];
const DECODE_MAX = 3;
const FOLD_MAX = 1;

/** Decoding, folding and encoding of the events of a busy service, beside JSON alone. */
export async function benchEvents(print: (line: string) => void): Promise<Verdict[]> {
  const { printed } = await runApart([...HEAP, APART]);
  const { events, bytes, steps } = JSON.parse(printed) as EventCosts;
  print(
    `${events} events with bodies of ${bytes.toFixed(0)} bytes${' '.repeat(11)}   µs   allocated`,
  );
  for (const [name, cost] of Object.entries(steps))
    print(
      `${name.padEnd(44)}${cost.us.toFixed(2).padStart(7)}${cost.bytes.toFixed(0).padStart(10)} B`,
    );
  const at = (name: string) => {
    const found = steps[name];
    if (found === undefined) throw new Error(`${name} was not measured`);
    return found;
  };
  const limit = at('JSON.parse of the body');
  const folds = Object.keys(steps).filter((name) => name.startsWith('fold into'));
  return [
    atMost('decode ÷ JSON.parse of the body, time', at('decode').us / limit.us, DECODE_MAX),
    atMost('decode ÷ JSON.parse, bytes allocated', at('decode').bytes / limit.bytes, DECODE_MAX),
    atMost(
      'encode ÷ JSON.stringify to bytes, time',
      at('encode').us / at('JSON.stringify to bytes').us,
      DECODE_MAX,
    ),
    ...folds.map((name) => atMost(`${name} ÷ JSON.parse, time`, at(name).us / limit.us, FOLD_MAX)),
  ];
}

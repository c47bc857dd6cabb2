/**
 * What one event costs, in a process of its own: `node --expose-gc events-apart.ts` prints for each
 * step microseconds and allocated bytes of an event, as JSON.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PerformanceObserver } from 'node:perf_hooks';
import { MsgImpl } from '@nats-io/transport-node';
import { encode, type PendingEvent } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import { createAccess } from '#projections/access.ts';
import { allProjections } from '#projections/all-projections.ts';
import type { Projection } from '#projections/projection.ts';
import { foldEvent, keyOf, toWrite } from '#projections/runner/fold.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import { readEvent } from '#src/kernel/event-store/jetstream/message.ts';
import { textOf } from '#src/kernel/event-store/record-bytes.ts';
import { exampleEvents } from '#test/support/events/example-lives.ts';
import { generateEvents } from '#test/support/events/event-generator.ts';
import type { EventCosts } from './events.ts';

/** Of sessions, their browsers and ledgers; few enough that all results fit into memory. */
const EVENTS = 4_000;
/** The first rounds let V8 compile; the medians are of the rest. */
const WARM_UP = 10;
const ROUNDS = 25;

const text = new TextEncoder();
const publisher = { publish: () => undefined };
const messages = [...generateEvents(EVENTS)].map(({ subject, headers, body }) =>
  messageOf(subject, headers, Buffer.from(body)),
);
const events = messages.map((message, at) => readEvent(message, at + 1));
/** Servers and organizations have few events: their examples, as often as the others. */
const rare = [...exampleEvents.values()].filter(({ aggregate: { kind } }) =>
  ['server', 'organization'].includes(kind),
);
const rareEvents = Array.from({ length: EVENTS }, (_, at) => recorded(at));
const collections = countCollections();

const costs: EventCosts = {
  events: EVENTS,
  bytes: messages.reduce((sum, { data }) => sum + data.length, 0) / EVENTS,
  steps: {
    'JSON.parse of the body': await measure(messages, (message) =>
      JSON.parse(textOf(message.data)),
    ),
    decode: await measure(messages, (message, at) => readEvent(message, at + 1)),
    encode: await measure(events, (event) => encode(event as unknown as PendingEvent)),
    'JSON.stringify to bytes': await measure(events, ({ data, state }) =>
      text.encode(JSON.stringify({ data, state, stateVersion: 1 })),
    ),
    evolve: await measure([...events, ...rareEvents], (event) =>
      evolve(event.aggregate, event.type.endsWith('.requested') ? null : event.state, event),
    ),
  },
};
for (const projection of allProjections) {
  const own = [...events, ...rareEvents].filter((event) => keyOf(projection, event) !== null);
  costs.steps[`fold into ${projection.name}`] = await measure(own, (event) =>
    writeOf(projection, event),
  );
}
const access = createAccess();
let applied = 0;
costs.steps['fold into access'] = await measure(rareEvents, (event) => {
  applied += 1;
  access.apply({ ...event, sequence: applied });
});
process.stdout.write(JSON.stringify(costs));
collections.stop();

/** The write that a projector makes of an event. */
function writeOf<View>(projection: Projection<View>, event: RecordedEvent) {
  return toWrite(foldEvent(projection, event));
}

/** A message as the NATS client delivers it. */
function messageOf(subject: string, headers: Record<string, string>, body: Uint8Array): MsgImpl {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = Buffer.from(`NATS/1.0\r\n${lines.join('')}\r\n`);
  const facts = { subject: Buffer.from(subject), sid: 1, hdr: head.length, size: 0 };
  return new MsgImpl(facts, Buffer.concat([head, body]), publisher);
}

function recorded(at: number): RecordedEvent {
  const event = rare[at % rare.length];
  if (event === undefined) throw new Error('no example of a server or an organization');
  const { subject, headers, body } = encode(event);
  return readEvent(messageOf(subject, headers, body), at + 1);
}

/** Medians of the rounds over all of the items. */
async function measure<Item>(items: readonly Item[], work: (item: Item, at: number) => unknown) {
  const times: number[] = [];
  const bytes: number[] = [];
  // The results are kept, so that V8 cannot leave the work out.
  const results: unknown[] = Array.from({ length: items.length });
  for (let round = 0; round < WARM_UP + ROUNDS; round += 1) {
    results.fill(null);
    global.gc?.();
    const collected = await collections.count();
    const before = process.memoryUsage().heapUsed;
    const begunAt = performance.now();
    for (let at = 0; at < items.length; at += 1) results[at] = work(items[at] as Item, at);
    const ms = performance.now() - begunAt;
    const after = process.memoryUsage().heapUsed;
    if (round < WARM_UP) continue;
    times.push((ms * 1_000) / items.length);
    // A collection in between would take what was allocated off the difference.
    if ((await collections.count()) === collected) bytes.push((after - before) / items.length);
  }
  if (bytes.length < ROUNDS / 2) throw new Error('the heap is too small for a round');
  return { us: median(times), bytes: median(bytes) };
}

/** Garbage collections so far; V8 reports them a turn of the event loop later. */
function countCollections() {
  let counted = 0;
  const observer = new PerformanceObserver((list) => (counted += list.getEntries().length));
  observer.observe({ entryTypes: ['gc'] });
  return {
    async count() {
      await nextTurn();
      await nextTurn();
      return counted;
    },
    stop: () => observer.disconnect(),
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

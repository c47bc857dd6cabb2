import { expect, it, test } from 'vitest';
import { aggregates, type Aggregates } from '#events/events.ts';
import type { AggregateKind } from '#events/subjects.ts';
import { decideCarryForward } from '#src/kernel/domain/carry-forward.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import { exampleEvents } from '#test/support/events/example-lives.ts';

const kinds = Object.keys(aggregates) as AggregateKind[];
type Event = Aggregates[AggregateKind]['event'];
type State = Aggregates[AggregateKind]['state'];

/** Each example that carries a state forward, with that state. */
const examples = kinds.map((kind) => {
  const example = exampleEvents.get(`${kind}.carried-forward`);
  if (example === undefined) throw new Error(`no example for a ${kind}`);
  const { aggregate, type, data, state } = example;
  return [kind, aggregate, { type, data } as Event, state as State] as const;
});

test.each(examples)(
  'the state of a %s is the same object afterwards',
  (_, aggregate, event, state) => {
    expect(evolve<AggregateKind>(aggregate, state, event)).toBe(state);
  },
);

test.each(examples)(
  'a history of a %s that begins with it is incomplete',
  (_, aggregate, event) => {
    const fold = () => evolve<AggregateKind>(aggregate, null, event);
    expect(fold).toThrow(RangeError);
    expect(fold).toThrow(`${event.type} before`);
    expect(fold).toThrow('the history is incomplete');
  },
);

it('is decided up to and including the last archived event', () => {
  for (const [kind, , , state] of examples) {
    const decide = (sequence: number) => decideCarryForward(kind, { state, sequence }, 10);
    expect(decide(9)).toHaveLength(1);
    expect(decide(10)).toEqual([{ type: `${kind}.carried-forward`, data: { archivedUpTo: 10 } }]);
    expect(decide(11)).toEqual([]);
  }
});

import { beforeEach, describe, expect, test } from 'vitest';
import type { EventWithState } from '#events/events.ts';
import type { SessionEvent, SessionState } from '#events/session.ts';
import { evolve } from '#src/kernel/domain/session/session.ts';
import {
  createWaitingSessions,
  type WaitingSessions,
} from '#src/roles/provisioner/pool/waiting-sessions.ts';
import {
  assigned,
  requested,
  requeued,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const SERVER = 'srv_9';
let sequence = 0;
let nowMs: number;
let states: Map<string, SessionState>;
let waiting: WaitingSessions;
beforeEach(() => {
  sequence = 100;
  states = new Map();
  nowMs = 0;
  waiting = createWaitingSessions(sequence, () => nowMs);
});

/** The session's next event; the process has not received it yet. */
function next(organizationId: string, id: string, event: SessionEvent): EventWithState<'session'> {
  const identity = { organizationId, id };
  const state = evolve(states.get(id) ?? null, event, identity);
  states.set(id, state);
  sequence += 1;
  const aggregate = { kind: 'session', ...identity } as const;
  return { ...event, aggregate, sequence, state } as unknown as EventWithState<'session'>;
}
function received(organizationId: string, id: string, event: SessionEvent) {
  const recorded = next(organizationId, id, event);
  waiting.observe(recorded);
  return recorded;
}
function turnBefore(request: EventWithState<'session'>): string | null {
  return waiting.turnBefore(request, SERVER)?.aggregate.id ?? null;
}

describe('the turn before a pulled request', () => {
  test('is that of an organization that has not been served', () => {
    const [first, second] = [received('a', 'a1', requested()), received('a', 'a2', requested())];
    expect(turnBefore(first)).toBeNull();
    waiting.claim(first);
    received('b', 'b1', requested());
    expect(turnBefore(second)).toBe('b1');
  });

  test('goes by weight', () => {
    const weights = { a: 3, b: 1 } as const;
    const requests = (['a', 'b'] as const).flatMap((organizationId) =>
      [1, 2, 3, 4, 5, 6].map((at) =>
        received(
          organizationId,
          `${organizationId}${at}`,
          requested({ queueWeight: weights[organizationId] }),
        ),
      ),
    );
    const served: string[] = [];
    for (let turn = 0; turn < 8; turn += 1) {
      const own = requests.find(({ state }) => !served.includes(state.id));
      if (own === undefined) break;
      const id = turnBefore(own) ?? own.state.id;
      served.push(id);
      waiting.claim(requests.find(({ state }) => state.id === id) ?? own);
    }
    expect(served.filter((id) => id.startsWith('a'))).toHaveLength(6);
    expect(served.filter((id) => id.startsWith('b'))).toEqual(['b1', 'b2']);
  });

  test('counts what other servers have served', () => {
    received('a', 'a1', requested());
    const own = received('a', 'a2', requested());
    received('b', 'b1', requested());
    expect(turnBefore(own)).toBeNull();
    received('a', 'a1', assigned());
    expect(turnBefore(own)).toBe('b1');
  });

  test('is never that of a session that has ended, or that this server could not launch for', () => {
    const own = received('a', 'a1', requested());
    waiting.claim(received('a', 'a0', requested()));
    received('b', 'b1', requested());
    received('b', 'b1', stopRequested('user', T0));
    received('b', 'b1', stopped(T0));
    expect(turnBefore(own)).toBeNull();
    received('c', 'c1', requested());
    received('c', 'c1', assigned('wl_1', SERVER));
    received('c', 'c1', {
      ...requeued,
      data: { ...requeued.data, serverId: SERVER },
    } as typeof requeued);
    expect(turnBefore(own)).toBeNull();
    expect(waiting.count()).toBe(2);
  });

  test('is that of the oldest request of the organization', () => {
    const own = received('a', 'a1', requested());
    waiting.claim(received('a', 'a0', requested()));
    received('b', 'later', requested({ createdAt: new Date(T0 + 1_000).toISOString() }));
    received('b', 'older', requested({ createdAt: new Date(T0).toISOString() }));
    expect(turnBefore(own)).toBe('older');
  });
});

describe('what is known of a pulled request', () => {
  test('is that it waits, also before this process has received it', () => {
    expect(waiting.statusOf(next('a', 'a1', requested()))).toBe('waits');
    expect(waiting.statusOf(received('a', 'a2', requested()))).toBe('waits');
  });

  test('is that it is claimed, until the claim is recorded or lost', () => {
    const [one, other] = [received('a', 'a1', requested()), received('a', 'a2', requested())];
    for (const request of [one, other]) {
      waiting.claim(request);
      expect(waiting.statusOf(request)).toBe('claimed');
    }
    received('a', 'a1', assigned());
    waiting.lose(other);
    expect([waiting.statusOf(one), waiting.statusOf(other)]).toEqual(['unknown', 'unknown']);
  });

  test('has to be read if it was requested before this process was started', () => {
    const request = next('a', 'a1', requested());
    received('b', 'b1', requested());
    expect(waiting.statusOf(request)).toBe('unknown');
  });

  test('a request that is claimed before it is received does not wait', () => {
    const request = next('a', 'a1', requested());
    waiting.claim(request);
    waiting.observe(request);
    expect(waiting.count()).toBe(0);
  });
});

describe('the newest request of a session', () => {
  test('is that of the last requeue, and is known since then', () => {
    const first = received('a', 'a1', requested());
    nowMs = 5_000;
    expect(waiting.newestOf(first)).toEqual({ request: first, knownMs: 5_000 });
    for (const _ of [1, 2]) {
      received('a', 'a1', assigned());
      const request = received('a', 'a1', requeued);
      nowMs += 700;
      expect(waiting.newestOf(first)).toEqual({ request, knownMs: 700 });
    }
  });

  test('is the given one, just known, if its event has not been received', () => {
    received('a', 'a1', requested());
    next('a', 'a1', assigned());
    const request = next('a', 'a1', requeued);
    nowMs = 5_000;
    expect(waiting.newestOf(request)).toEqual({ request, knownMs: 0 });
  });

  test('is unknown once the session has been assigned', () => {
    const first = received('a', 'a1', requested());
    received('a', 'a1', assigned());
    expect(waiting.newestOf(first)).toBeNull();
  });
});

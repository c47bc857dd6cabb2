import { describe, expect, it } from 'vitest';
import { STATE_UNKNOWN } from '#events/codec.ts';
import type { RecordedEvent, RefOf } from '#events/events.ts';
import { sessionsOf, type AggregateKind } from '#events/subjects.ts';
import { organizationSessions } from '#projections/organization-sessions.ts';
import { foldUpTo, nothing, type Fold } from '#src/api/time-travel/past-fold.ts';
import { openPast } from '#src/api/time-travel/past.ts';
import { createMemoryEventLog } from '#src/event-store/event-store.memory.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { accessed, aSession, change, queued, requested } from '#test/support/events.fixture.ts';

const organization = 'org_past';
const subjects = [sessionsOf(organization)];

/** A log of some sessions of an organization, and others between them. */
async function someLog(): Promise<EventLog> {
  const log = createMemoryEventLog();
  for (let at = 0; at < 30; at += 1) {
    const session = aSession(at % 3 === 0 ? undefined : organization);
    const before = await log.lastSequence();
    await log.append([change(0, requested(session))]);
    // What they carry is what they fold to: of a session in the queue nothing else is recorded.
    const next = at % 2 === 0 ? queued(session) : accessed(session);
    if (at % 5 !== 0) await log.append([change(before + 1, next)]);
  }
  return log;
}

/** The same log, whose events up to a sequence carry states that nobody understands any more. */
function withOldStates(log: EventLog, upTo: number): EventLog {
  const age = <Event extends RecordedEvent | null>(event: Event): Event =>
    event !== null && event.sequence <= upTo ? { ...event, state: STATE_UNKNOWN } : event;
  return {
    ...log,
    async *follow(options) {
      for await (const batch of log.follow(options)) yield batch.map(age);
    },
    async lastUpTo<Kind extends AggregateKind>(aggregate: RefOf<Kind>, sequence: number) {
      const last = await log.lastUpTo<Kind>(aggregate, sequence);
      return age(last as RecordedEvent | null) as typeof last;
    },
  };
}

function told({ upTo, views }: Fold) {
  return [upTo, [...views].map(([key, { text, names, order }]) => [key, text, [...names], order])];
}

describe('a fold of the past', () => {
  it('that goes on from an earlier one is that which begins at the beginning', async () => {
    const log = await someLog();
    const end = await log.lastSequence();
    for (let upTo = 0; upTo <= end; upTo += 5) {
      const whole = await foldUpTo(log, organizationSessions, subjects, { from: nothing, upTo });
      const half = { from: nothing, upTo: Math.floor(upTo / 2) };
      const from = await foldUpTo(log, organizationSessions, subjects, half);
      const continued = await foldUpTo(log, organizationSessions, subjects, { from, upTo });
      expect(told(continued)).toEqual(told(whole));
    }
  });

  it('trusts no state of another version of the fold, and folds the events instead', async () => {
    const log = await someLog();
    const upTo = await log.lastSequence();
    const whole = await foldUpTo(log, organizationSessions, subjects, { from: nothing, upTo });
    for (const old of [upTo, upTo / 2, 7]) {
      const aged = withOldStates(log, old);
      const same = await foldUpTo(aged, organizationSessions, subjects, { from: nothing, upTo });
      expect(told(same)).toEqual(told(whole));
      const from = await foldUpTo(log, organizationSessions, subjects, { from: nothing, upTo: 9 });
      const on = await foldUpTo(aged, organizationSessions, subjects, { from, upTo });
      expect(told(on)).toEqual(told(whole));
    }
  });
});

describe('the past of an organization', () => {
  it('is read from the log once for all the pages that are asked for', async () => {
    const log = await someLog();
    let read = 0;
    const watched: EventLog = {
      ...log,
      async *follow(options) {
        for await (const batch of log.follow(options)) {
          read += batch.length;
          yield batch;
        }
      },
    };
    const past = openPast({ desk: { log: watched, now: Date.now }, queueTimeoutMs: 60_000 });
    const at = Date.now() - 1_000;
    const lists = [`${organization}/all`];
    const first = await past.sessions(organization, { lists, offset: 0, limit: 10 }, at);
    const once = read;
    const second = await past.sessions(organization, { lists, offset: 10, limit: 10 }, at);
    expect([first.total, second.total, read]).toEqual([20, 20, once]);
    const rows = JSON.parse(`[${first.items},${second.items}]`) as { id: string }[];
    expect(new Set(rows.map(({ id }) => id)).size).toBe(20);
  });

  it('is refused where too many ask at once, and answered again afterwards', async () => {
    const log = await someLog();
    const past = openPast({ desk: { log, now: Date.now }, queueTimeoutMs: 60_000 });
    const query = { lists: [`${organization}/all`], offset: 0, limit: 1 };
    const at = Date.now() - 1_000;
    const ask = () => past.sessions(organization, query, at);
    const answers = await Promise.allSettled(Array.from({ length: 40 }, ask));
    const refused = answers.filter(({ status }) => status === 'rejected');
    expect(refused.length).toBeGreaterThan(0);
    expect(answers.length - refused.length).toBeGreaterThan(10);
    expect((await ask()).total).toBe(20);
  });
});

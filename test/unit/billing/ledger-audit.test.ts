import { describe, expect, it, test } from 'vitest';
import { isOf, type RecordedEvent } from '#events/events.ts';
import { createLedgerAudit } from '#src/kernel/billing/ledger-audit.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { compareWithSessions, openStatement } from '#src/apps/cli/commands/statement.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { sessionRef } from '#test/support/given-when-then.ts';
import {
  browser,
  createSession,
  egress,
  egressTraffic,
  HOUR,
  MINUTE,
  T0,
} from '#test/support/examples.ts';
import { context, newCause, watchedLog, type Watched } from '#test/support/watched-event-store.ts';

const { organizationId } = sessionRef;
const activate: SessionCommand = { type: 'ActivateSession', workload: browser(), now: T0 };
const stop: SessionCommand = { type: 'StopSession', reason: 'user', now: T0 + 7 * MINUTE };
const confirm: SessionCommand = { type: 'ConfirmStopped', now: T0 + 8 * MINUTE };
const extend: SessionCommand = {
  type: 'ExtendSession',
  byMs: HOUR,
  maxLifetimeMs: 72 * HOUR,
  duration: '1h',
  now: T0,
};

const record: SessionCommand = { type: 'RecordEgress', traffic: egressTraffic, now: T0 + MINUTE };

/** A session that ran and ended, one that never started, one that is still running. */
const lives: Record<string, SessionCommand[]> = {
  ses_ended: [createSession({ egress }), activate, extend, record, record, stop, confirm],
  ses_unstarted: [createSession(), stop],
  ses_open: [createSession(), activate, extend],
};

async function recorded(): Promise<RecordedEvent[]> {
  const log = await watchedLog({ credits: 1_000 });
  for (const [id, commands] of Object.entries(lives))
    for (const command of commands) await ask(log, id, command);
  const stopReading = new AbortController();
  const options = { subjects: ['evt.>'], after: 0, signal: stopReading.signal, onUnreadable() {} };
  const end = await log.lastSequence();
  const events: RecordedEvent[] = [];
  for await (const batch of log.subscribe(options)) {
    events.push(...batch);
    if (events.at(-1)?.sequence === end) break;
  }
  return events;
}

function ask(log: Watched, id: string, command: SessionCommand) {
  const limits = { concurrentSessions: 5 };
  return handleSessionCommand(context(log), { organizationId, id }, command, newCause(), limits);
}

function audit(events: readonly RecordedEvent[]) {
  const fold = createLedgerAudit();
  for (const event of events) fold.take(event);
  return fold.report();
}

function state(events: readonly RecordedEvent[]) {
  const span = { after: 0, upTo: events.at(-1)?.sequence ?? 0 };
  const statement = openStatement(span);
  for (const event of events)
    if (event.aggregate.kind === 'ledger') statement.takeLine(event as never);
    else statement.takeSession(event as never);
  const closed = statement.close();
  return { ...closed, differences: compareWithSessions(closed, span) };
}

/**
 * Whether the event has that type and is about that session (the session's own event, or the
 * ledger's).
 */
function isLine(event: RecordedEvent, type: string, id: string): boolean {
  const subject = 'sessionId' in event.data ? event.data.sessionId : '';
  return (
    event.type === type &&
    (subject === id || ('id' in event.aggregate && event.aggregate.id === id))
  );
}

describe('an audit of a ledger', () => {
  it('finds no difference in a ledger that the service recorded', async () => {
    const [report, ...others] = audit(await recorded());
    expect(others).toEqual([]);
    expect(report).toMatchObject({ organizationId, sessions: 3, open: 1, differences: [] });
    expect(report?.ledger).toEqual(report?.bySessions);
    expect(report?.ledger).toMatchObject({ slotsInUse: 1, creditsReserved: 180, creditsUsed: 7 });
  });

  it('finds none where states were carried forward, and a wrong one where it was', async () => {
    const events = await recorded();
    const last = events.findLast((event) => isOf('ledger', event)) as RecordedEvent;
    const open = events.findLast(({ aggregate }) => 'id' in aggregate) as RecordedEvent;
    const data = { archivedUpTo: 1 };
    const line = { ...last, type: 'ledger.carried-forward', data } as RecordedEvent;
    const own = { ...open, type: 'session.carried-forward', data } as RecordedEvent;
    const [report] = audit([...events, line, own]);
    expect(report).toEqual(audit(events)[0]);
    expect(state([...events, line, own])).toEqual(state(events));
    const forged = { ...line, state: { ...line.state, creditsUsed: 0 } } as RecordedEvent;
    expect(audit([...events, forged])[0]?.differences).toEqual([
      expect.stringContaining('carries another state'),
    ]);
  });

  test.each([
    ['a slot that was never released', 'ledger.slot-released', 'ses_ended'],
    ['a slot that was never taken', 'ledger.slot-reserved', 'ses_open'],
    ['credits that were never reserved', 'ledger.credits-reserved', 'ses_open'],
    ['an end that was never recorded', 'session.stopped', 'ses_ended'],
    ['an extension that was never recorded', 'session.extended', 'ses_open'],
    ['a session that was never recorded', 'session.requested', 'ses_open'],
  ])('finds %s', async (_, type, id) => {
    const events = await recorded();
    const [report] = audit(events.filter((event) => !isLine(event, type, id)));
    expect(report?.differences.join('\n')).toContain(id);
    expect(report?.ledger).not.toEqual(report?.bySessions);
  });

  it('finds duplicate ledger events and wrong amounts', async () => {
    const events = await recorded();
    const released = events.findIndex((event) =>
      isLine(event, 'ledger.slot-released', 'ses_ended'),
    );
    const line = events[released] as RecordedEvent & { data: object };
    expect(audit([...events, line])[0]?.differences.join()).toContain('which is not, or has ended');
    const other = { ...line, data: { ...line.data, creditsUsed: 6, creditsRefunded: 174 } };
    const differences = audit(events.with(released, other as RecordedEvent))[0]?.differences;
    expect(differences?.join('\n')).toContain('by the ledger 6 and 174');
  });

  it('finds traffic that the session, its records or the ledger tell otherwise', async () => {
    const events = await recorded();
    const [report] = audit(events);
    expect(report?.ledger.egress).toEqual({
      ...{ bytesSent: 8_200, bytesReceived: 182_000, refused: 4 },
    });
    const isRecord = ({ type }: RecordedEvent) => type === 'session.egress-recorded';
    const lost = audit(events.toSpliced(events.findIndex(isRecord), 1));
    expect(lost[0]?.differences).toEqual([
      'ses_ended: its traffic is 8200 bytes sent, 182000 received, 4 refused, ' +
        'by its records 4100 bytes sent, 91000 received, 2 refused',
    ]);
    for (const [type, what] of [
      ['ledger.slot-released', 'by the ledger 1 bytes sent'],
      ['session.stopped', 'its traffic is 1 bytes sent'],
    ] as const) {
      const at = events.findIndex((event) => isLine(event, type, 'ses_ended'));
      const event = events[at] as RecordedEvent & { data: object };
      const other = { bytesSent: 1, bytesReceived: 0, refused: 0 };
      const forged = { ...event, data: { ...event.data, egress: other } } as RecordedEvent;
      expect(audit(events.with(at, forged))[0]?.differences.join('\n')).toContain(what);
    }
  });

  it('finds no difference where a session ended before there were totals', async () => {
    const older = (await recorded()).map((event) => {
      const { egress: _, ...data } = event.data as { egress?: unknown };
      const { egress: __, ...state } = event.state as { egress?: unknown };
      if (isOf('ledger', event)) return { ...event, data, state } as RecordedEvent;
      return event.type === 'session.requested' ? event : ({ ...event, data } as RecordedEvent);
    });
    expect(audit(older)[0]?.differences).toEqual([]);
  });

  it('finds a state that differs from the sum of the ledger events', async () => {
    const events = await recorded();
    const last = events.findLastIndex(({ aggregate }) => aggregate.kind === 'ledger');
    const line = events[last] as RecordedEvent & { state: object };
    const forged = { ...line, state: { ...line.state, creditsAvailable: 1_000_000 } };
    const [report] = audit(events.with(last, forged as RecordedEvent));
    expect(report?.differences).toEqual([expect.stringContaining('carries another state')]);
  });
});

describe('a statement', () => {
  it('lists each settled session with the events of its cost, and balances', async () => {
    const { lines, differences, ...balances } = state(await recorded());
    expect(differences).toEqual([]);
    expect(balances).toMatchObject({ opening: 0, granted: 1_000, closing: 993 });
    expect(
      lines.map(({ sessionId, creditsUsed, creditsRefunded }) => [
        sessionId,
        creditsUsed,
        creditsRefunded,
      ]),
    ).toEqual([
      ['ses_ended', 7, 173],
      ['ses_unstarted', 0, 120],
    ]);
    expect(lines[0]?.events.map(({ type }) => type)).toEqual([
      'session.requested',
      'session.activated',
      'session.extended',
      'session.stop-requested',
      'session.stopped',
      'ledger.slot-released',
    ]);
  });

  it('differs if the ledger’s charge differs from the cost by the session’s events', async () => {
    const events = await recorded();
    const at = events.findIndex((event) => isLine(event, 'ledger.slot-released', 'ses_ended'));
    const line = events[at] as RecordedEvent & { data: object };
    const other = { ...line, data: { ...line.data, creditsUsed: 8, creditsRefunded: 172 } };
    const charged = state(events.with(at, other as RecordedEvent)).differences;
    expect(charged).toEqual([expect.stringContaining('ses_ended: charged 8 and returned 172')]);
    const forgotten = state(events.filter((event) => event !== line)).differences;
    expect(forgotten).toEqual(['ses_ended: ended but was not charged']);
    const twice = state([...events, { ...line, sequence: line.sequence + 100 }]);
    expect(twice.differences).toEqual([expect.stringContaining('ses_ended: charged twice')]);
  });
});

import { describe, expect, it, test } from 'vitest';
import type { DecidedDeadLetter, ReadModel } from '#src/apps/dashboard/operator/answers.ts';
import {
  eventsAddress,
  eventsPath,
  withParameter,
} from '#src/apps/dashboard/operator/events-address.ts';
import {
  archiveVerdictOf,
  lagOf,
  outcomeOf,
  placeOf,
  purposeOf,
  verdictOf,
} from '#src/apps/dashboard/operator/words.ts';
import { allProjections } from '#projections/all-projections.ts';

const model: ReadModel = {
  ...{ name: 'servers', version: 2, views: 1, checkpoint: 7, head: 7, status: 'in use' },
  ...{ lag_events: 0, lag_ms: 0 },
};
const letter: DecidedDeadLetter = {
  ...{ id: '17.servers:v2', kind: 'projection', stream: 'EVENTS', sequence: 17, attempts: 1 },
  ...{ failed_by: 'servers:v2', subject: null, reason: 'not readable', at: '2026-11-20T09:30:00Z' },
  ...{ outcome: 'mended', failure: null },
};

test('each read model of this version has a purpose in words', () => {
  for (const { name } of allProjections) expect([name, purposeOf(name)]).not.toEqual([name, '']);
  expect(purposeOf('servers:v2:next')).toBe(purposeOf('servers'));
  expect(purposeOf('gone')).toBe('');
});

describe('the lag of a read model', () => {
  it.each([
    [{ lag_events: 0, lag_ms: 0 }, 'up to date'],
    [{ lag_events: 1, lag_ms: 40 }, '1 event, 40 ms'],
    [{ lag_events: 12, lag_ms: null }, '12 events'],
    [{ lag_events: null, lag_ms: null }, 'not folded any more'],
  ])('%j is %j', (lag, text) => expect(lagOf({ ...model, ...lag })).toBe(text));
});

describe('the address of events', () => {
  const pathOf = (address: string, at: Parameters<typeof eventsPath>[1] = null) =>
    eventsPath(new URL(address, 'http://localhost').searchParams, at);

  it('asks for those of an aggregate, up to a moment', () => {
    const address = eventsAddress({ kind: 'server', id: 'srv_1', at: '17' });
    expect(address).toBe('/operator?tab=events&kind=server&id=srv_1&at=17');
    expect(pathOf(address, { sequence: 17 })).toBe(
      '/api/operator/events?kind=server&id=srv_1&before=18',
    );
    expect(pathOf('/operator?tab=events', { time: '2026-11-20T09:30:00.000Z' })).toBe(
      '/api/operator/events?as_of=2026-11-20T09%3A30%3A00.000Z',
    );
    expect(pathOf('/operator?before=9', { sequence: 17 })).toBe('/api/operator/events?before=9');
  });

  it('begins at the newest again with another filter, and another kind has other ids', () => {
    const address = new URLSearchParams('tab=events&kind=server&id=srv_1&before=9');
    expect(withParameter(address, 'kind', 'session').toString()).toBe('tab=events&kind=session');
    expect(withParameter(address, 'id', null).toString()).toBe('tab=events&kind=server');
    expect(withParameter(address, 'before', '4').toString()).toBe(
      'tab=events&kind=server&id=srv_1&before=4',
    );
  });
});

describe('a dead letter', () => {
  it('is an event of the log, or a message of a work queue', () => {
    expect(placeOf(letter)).toBe('event 17');
    expect(placeOf({ stream: 'INBOX', sequence: 4 })).toBe('message 4 of INBOX');
  });

  it.each([
    [{ outcome: 'mended' }, 'Event 17 is handled now'],
    [{ outcome: 'skipped' }, 'Event 17 is left out for good'],
    [{ outcome: 'fails', failure: 'still wrong' }, 'Event 17 still fails, and stays here: still'],
  ] as const)('%j', (decided, text) =>
    expect(outcomeOf({ ...letter, ...decided })).toContain(text),
  );
});

test('the verdicts of audits count what agrees and what does not', () => {
  const one = { organization_id: 'acme', agrees: true, differences: [], sessions: 1, open: 0 };
  const credits = { credits_granted: 1, credits_available: 1, credits_reserved: 0 };
  const ledger = { ...one, ...credits, credits_used: 0 };
  const result = { agrees: true, up_to: 9, unreadable: 0, organizations: [ledger] };
  expect(verdictOf(result)).toBe('1 ledger: each agrees with its sessions, up to event 9.');
  const wrong = { ...ledger, agrees: false };
  const differs = { ...result, agrees: false, unreadable: 2, organizations: [ledger, wrong] };
  expect(verdictOf(differs)).toBe(
    '1 of 2 ledgers differs from the sessions, up to event 9. 2 events could not be read.',
  );
  const archive = { agrees: true, segments: 0, records: 0, signer: null, findings: [] };
  expect(archiveVerdictOf(archive)).toContain('Nothing is archived yet');
  const sealed = { ...archive, segments: 2, records: 20 };
  expect(archiveVerdictOf(sealed)).toBe('20 events in 2 segments: all as they were sealed.');
  expect(archiveVerdictOf({ ...sealed, agrees: false })).toContain('not as they were sealed');
});

import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  streamFilter,
  filters,
  filtersFor,
  firedSubject,
  isId,
  isOrganizationId,
  parseSubject,
  sessionAnywhere,
  subjectOf,
  timersFilter,
  timerSubject,
  type AggregateRef,
} from '#events/subjects.ts';
import { todaysSchemas } from '#test/support/events/golden-files.ts';

const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);

/** The subject of an arbitrary event. */
const anySubject = fc
  .tuple(fc.constantFrom(...todaysSchemas.keys()), id, id)
  .map(([type, organizationId, other]) => ({
    type,
    aggregate: refOf(type.split('.')[0] as AggregateRef['kind'], organizationId, other),
  }));

describe('an id', () => {
  test.each(['a', 'ses_1', 'A-Z_0-9', 'x'.repeat(64)])('may be %s', (text) => {
    expect(isId(text)).toBe(true);
  });

  it('is valid at every place of a subject', () => {
    fc.assert(fc.property(id, isId));
  });
});

it('no organization may have the id that fired timers use in their subjects', () => {
  expect(isOrganizationId('fired')).toBe(false);
  for (const build of [timerSubject, firedSubject])
    expect(() => build('fired', 'ses_1', 'expiry')).toThrow(RangeError);
  expect(() => timersFilter('fired', 'ses_1')).toThrow(RangeError);
  expect(isOrganizationId('fired_')).toBe(true);
  expect(timerSubject('acme', 'fired', 'expiry')).toBe('tmr.acme.fired.expiry');
});

describe('no tenant can leave its subjects with', () => {
  const escapes = [
    '',
    '.',
    'org.evil',
    'org_1.session.ses_1',
    '..',
    '*',
    'org_*',
    '>',
    'a>',
    ' ',
    'a b',
    ' a',
    'a ',
    'a\tb',
    'a\r\nPUB x',
    'a\n',
    '\u0000',
    'x'.repeat(65),
    'ü',
    'ｏｒｇ',
    '组织',
    'a\u200bb',
    '😀',
    '$JS',
    'a/b',
    'a%2Eb',
  ];

  test.each(escapes.map((text) => [text]))('the id %j', (text) => {
    expect(isId(text)).toBe(false);
    const places: (() => string)[] = [
      () => subjectOf({ kind: 'session', organizationId: text, id: 'a' }, 'session.queued'),
      () => subjectOf({ kind: 'session', organizationId: 'a', id: text }, 'session.queued'),
      () => subjectOf({ kind: 'ledger', organizationId: text }, 'ledger.slot-reserved'),
      () => subjectOf({ kind: 'organization', organizationId: text }, 'organization.registered'),
      () => subjectOf({ kind: 'server', id: text }, 'server.joined'),
      () => subjectOf({ kind: 'workload', id: text }, 'workload.idle'),
      () => streamFilter({ kind: 'session', organizationId: 'a', id: text }),
      () => sessionAnywhere(text),
      () => filtersFor(text, null)[0] ?? '',
      () => filtersFor(null, `session.${text}`)[0] ?? '',
      () => filtersFor('a', `${text}.queued`)[0] ?? '',
      () => timerSubject(text, 'a', 'expiry'),
      () => timerSubject('a', text, 'expiry'),
      () => timersFilter(text, 'a'),
      () => timersFilter('a', text),
      () => firedSubject(text, 'a', 'expiry'),
      () => firedSubject('a', text, 'expiry'),
    ];
    for (const place of places) expect(place).toThrow(RangeError);
  });

  it('any text that is not an id', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        fc.pre(!/^[A-Za-z0-9_-]{1,64}$/.test(text));
        expect(() => streamFilter({ kind: 'ledger', organizationId: text })).toThrow(RangeError);
      }),
    );
  });
});

describe('the subject of an event', () => {
  it('parses to the same aggregate and type', () => {
    fc.assert(
      fc.property(anySubject, ({ aggregate, type }) => {
        expect(parseSubject(subjectOf(aggregate, type))).toEqual({ aggregate, type });
      }),
    );
  });

  it("matches its aggregate's filter, and no other's", () => {
    fc.assert(
      fc.property(anySubject, anySubject, (one, other) => {
        const subject = subjectOf(one.aggregate, one.type);
        expect(subject.startsWith(streamFilter(one.aggregate).slice(0, -1))).toBe(true);
        if (streamFilter(one.aggregate) !== streamFilter(other.aggregate))
          expect(subject.startsWith(streamFilter(other.aggregate).slice(0, -1))).toBe(false);
      }),
    );
  });

  it('is refused for an event of another kind of aggregate', () => {
    const ledger = { kind: 'ledger', organizationId: 'org_1' } as const;
    for (const type of ['session.queued', 'ledger', 'ledger.', '', 'ledger.a b', 'ledger.a.b'])
      expect(() => subjectOf(ledger, type), type).toThrow(RangeError);
  });
});

describe('the filters for', () => {
  test.each([
    ['all', null, null, filters.all],
    ["an organization's", 'org_1', null, ['evt.org_1.>']],
    ['a type of a session', null, 'session.queued', ['evt.*.session.*.queued']],
    ["a type of an organization's sessions", 'a', 'session.queued', ['evt.a.session.*.queued']],
    ['a type of a ledger', 'a', 'ledger.slot-reserved', ['evt.a.ledger.slot-reserved']],
    ['a type of the fleet', null, 'workload.idle', ['fleet.workload.*.idle']],
    ["an organization's of the fleet, which are none", 'a', 'workload.idle', []],
  ])('%s', (_, organizationId, type, expected) => {
    expect(filtersFor(organizationId, type)).toEqual(expected);
  });

  it('a session without knowing whose it is', () => {
    expect(sessionAnywhere('ses_1')).toBe('evt.*.session.ses_1.>');
  });
});

test.each([
  '',
  'evt',
  'evt.org_1',
  'evt.org_1.session.ses_1',
  'evt.org_1.session.ses_1.queued.more',
  'evt.org_1.ledger',
  'evt.org_1.server.joined',
  'evt..session.ses_1.queued',
  'evt.org_1.session..queued',
  'evt.*.session.ses_1.queued',
  'evt.org_1.session.>.queued',
  'evt.org_1.session.ses 1.queued',
  'evt.organisé.ledger.slot-reserved',
  'fleet.server.srv_1',
  'fleet.session.ses_1.queued',
  'live.evt.org_1.session.ses_1.queued',
  'tmr.org_1.ses_1.expiry',
])('%j is no subject of an event', (subject) => {
  expect(parseSubject(subject)).toBeNull();
});

function refOf(kind: AggregateRef['kind'], organizationId: string, other: string): AggregateRef {
  switch (kind) {
    case 'session':
    case 'profile':
      return { kind, organizationId, id: other };
    case 'ledger':
    case 'organization':
      return { kind, organizationId };
    case 'server':
    case 'workload':
    case 'archive':
      return { kind, id: other };
  }
}

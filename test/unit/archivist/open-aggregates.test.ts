import { expect, it } from 'vitest';
import { createOpenAggregates } from '#src/features/archive/archivist/open-aggregates.ts';

function openAfter(...subjects: string[]): unknown[] {
  const open = createOpenAggregates();
  open.add(subjects.map((subject) => ({ subject })));
  return open.all();
}

const session = { kind: 'session', organizationId: 'acme', id: 'ses_1' };

it('what ended is not open, and what began again is', () => {
  const life = ['requested', 'activated', 'stopped'].map(
    (type) => `evt.acme.session.ses_1.${type}`,
  );
  expect(openAfter(...life)).toEqual([]);
  expect(openAfter(...life.slice(0, 2))).toEqual([session]);
  expect(openAfter(...life, 'evt.acme.session.ses_1.carried-forward')).toEqual([session]);
  expect(openAfter('fleet.server.srv_1.joined', 'fleet.server.srv_1.lost')).toEqual([]);
});

it('an event that ends another kind of aggregate ends nothing here', () => {
  expect(openAfter('fleet.server.srv_1.joined', 'fleet.server.srv_1.stopped')).toEqual([
    { kind: 'server', id: 'srv_1' },
  ]);
});

it('a subject that is no event is passed over, and hides no aggregate', () => {
  const requested = 'evt.acme.session.ses_1.requested';
  const foreign = 'evt.acme.session.ses_1.f\u00fcr';
  expect(openAfter(foreign)).toEqual([]);
  expect(openAfter(requested, foreign)).toEqual([session]);
  expect(openAfter(foreign, requested)).toEqual([session]);
  expect(openAfter('other')).toEqual([]);
});

import { expect, test } from 'vitest';
import { meanings } from '#events/meanings.ts';
import { writersOf, type Writer } from '#events/writers.ts';
import { todaysSchemas } from '#test/support/events/golden-files.ts';

const types = [...todaysSchemas.keys()];

/** The roles of `api (stop), command line`: what is in brackets says when. */
function rolesIn(by: string): Writer[] {
  const names = by.replaceAll(/ \([^()]*\)/g, '').split(', ');
  return names.map((name) => (name === 'command line' ? 'operator' : name) as Writer);
}

test('each event type has its writers', () => {
  expect(Object.keys(writersOf).toSorted()).toEqual(types.toSorted());
});

test.each(types)('%s is written by the roles that its documentation names', (type) => {
  const named = rolesIn(meanings[type]?.by ?? '');
  expect(named.toSorted()).toEqual(writersOf[type]?.toSorted());
});

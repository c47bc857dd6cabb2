import { readFileSync } from 'node:fs';
import { expect, it, test } from 'vitest';
import { errors, isRejection, reject, type ErrorName } from '#src/kernel/errors.ts';

const readme = readFileSync(new URL('../../../src/roles/api/README.md', import.meta.url), 'utf8');
const documented = [...readme.matchAll(/^\| (\d{3}) \| ([A-Z_]+) \| (.+) \| (.+) \|$/gm)].map(
  ([, status, name = '', when = '', context = '']) => ({
    status: Number(status),
    name,
    when,
    context,
  }),
);

it('the table in the code equals the documented one', () => {
  const coded = Object.entries(errors).map(([name, { status }]) => `${status} ${name}`);
  const inErrorTable = documented.map(({ status, name }) => `${status} ${name}`);
  expect(inErrorTable.toSorted()).toEqual(coded.toSorted());
});

it('every error is documented once, with the case it is for', () => {
  expect(new Set(documented.map(({ name }) => name)).size).toBe(documented.length);
  for (const { name, when } of documented) expect(when.length, name).toBeGreaterThan(10);
});

test.each([
  ['INVALID_DURATION', 400, 'duration'],
  ['UNAUTHORIZED', 401, '–'],
  ['INSUFFICIENT_CREDITS', 402, 'required'],
  ['SESSION_NOT_FOUND', 404, 'session_id'],
  ['SESSION_LIMIT_EXCEEDED', 429, 'limit'],
  ['NO_SERVERS_AVAILABLE', 503, 'servers'],
] as const)('%s is the specified name for its %i, with its context', (name, status, context) => {
  expect(errors[name].status).toBe(status);
  expect(documented.find((row) => row.name === name)?.context).toContain(context);
});

it('the message names the bounds of a duration, as specified', () => {
  expect(errors.INVALID_DURATION.message).toMatch(/between 1 minute and 24 hours/);
});

test.each(Object.keys(errors) as ErrorName[])('%s has a sentence for people', (name) => {
  expect(errors[name].message).toMatch(/^[A-Z].*[.]$/);
});

it('a rejection is distinguishable from the events of a decision', () => {
  expect(isRejection(reject('INTERNAL'))).toBe(true);
  expect(isRejection([])).toBe(false);
});

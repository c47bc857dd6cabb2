import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { variables } from '#src/kernel/config/config.ts';
import { secretFileVariables } from '#src/kernel/config/secrets.ts';
import { configurationDocument, topics } from '#test/support/configuration-document.ts';

const FILE = new URL('../../../deploy/configuration.md', import.meta.url);
const COMMAND = 'UPDATE_GOLDEN=1 npm test -- test/unit/config';
if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(FILE, configurationDocument());

test('every variable but files of secrets belongs to one topic of the document', () => {
  const grouped = topics.flatMap(({ names }) => names);
  const all = [...grouped, ...Object.keys(secretFileVariables)];
  expect(all.toSorted()).toEqual(Object.keys(variables).toSorted());
});

test('deploy/configuration.md lists every variable with its default and meaning', () => {
  const recorded = readFileSync(FILE, 'utf8');
  expect(recorded, `out of date; run ${COMMAND}`).toBe(configurationDocument());
});

import { expect, it } from 'vitest';
import { newId } from '#src/ids.ts';

it('new ids have 128 random bits and are all different', () => {
  // More than are drawn at once.
  const ids = Array.from({ length: 10_000 }, () => newId('ses'));
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(/^ses_[A-Za-z0-9_-]{22}$/);
});

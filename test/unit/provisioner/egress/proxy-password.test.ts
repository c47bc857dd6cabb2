import { expect, it } from 'vitest';
import { createMasterKeys } from '#src/kernel/master-keys.ts';
import { createProxyPasswords } from '#src/features/egress/proxy-password.ts';

const passwordsOf = (...letters: string[]) =>
  createProxyPasswords(createMasterKeys(letters.map((letter) => Buffer.alloc(32, letter))));
const passwords = passwordsOf('a');

it('is opened with the key and for the session that it was sealed with and for', () => {
  const sealed = passwords.seal('wörd:/@', 'ses_1');
  expect(sealed).toMatch(/^[\w-]+$/);
  expect(passwords.open(sealed, 'ses_1')).toBe('wörd:/@');
  expect(() => passwords.open(sealed, 'ses_2')).toThrow();
  expect(() => passwordsOf('b').open(sealed, 'ses_1')).toThrow();
  const changed = sealed.slice(0, -2) + (sealed.endsWith('AA') ? 'BB' : 'AA');
  expect(() => passwords.open(changed, 'ses_1')).toThrow();
});

it('has another text each time, and the same mark', () => {
  expect(passwords.seal('word', 'ses_1')).not.toBe(passwords.seal('word', 'ses_1'));
  expect(passwords.markOf('word')).toBe(passwords.markOf('word'));
  expect(passwords.markOf('word')).not.toBe(passwords.markOf('ward'));
});

it('is opened after a change of the master key, as long as the old one is there', () => {
  const sealed = passwords.seal('word', 'ses_1');
  const after = passwordsOf('b', 'a');
  expect(after.open(sealed, 'ses_1')).toBe('word');
  expect(() => passwords.open(after.seal('word', 'ses_1'), 'ses_1')).toThrow();
});

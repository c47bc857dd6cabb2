import { expect, it, test } from 'vitest';
import { createProxyPasswords } from '#src/provisioner/egress/proxy-password.ts';

const passwords = createProxyPasswords(Buffer.alloc(32, 'a'));

it('is opened with the key and for the session that it was sealed with and for', () => {
  const sealed = passwords.seal('wörd:/@', 'ses_1');
  expect(sealed).toMatch(/^[\w-]+$/);
  expect(passwords.open(sealed, 'ses_1')).toBe('wörd:/@');
  expect(() => passwords.open(sealed, 'ses_2')).toThrow();
  expect(() => createProxyPasswords(Buffer.alloc(32, 'b')).open(sealed, 'ses_1')).toThrow();
  const changed = sealed.slice(0, -2) + (sealed.endsWith('AA') ? 'BB' : 'AA');
  expect(() => passwords.open(changed, 'ses_1')).toThrow();
});

it('has another text each time, and the same mark', () => {
  expect(passwords.seal('word', 'ses_1')).not.toBe(passwords.seal('word', 'ses_1'));
  expect(passwords.markOf('word')).toBe(passwords.markOf('word'));
  expect(passwords.markOf('word')).not.toBe(passwords.markOf('ward'));
});

test('a short master key is refused', () => {
  expect(() => createProxyPasswords(Buffer.alloc(8))).toThrow(RangeError);
});

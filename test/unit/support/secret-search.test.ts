import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { findSecrets, formsOf } from '#test/support/service/secret-search.ts';

/** Secrets of the kinds and lengths that the service issues, and one with special characters. */
const secrets = new Map([
  ['API key', `bss_acme_${randomBytes(24).toString('base64url')}`],
  ['VNC password', randomBytes(6).toString('base64url')],
  ['ticket', `${randomBytes(40).toString('base64url')}.${randomBytes(32).toString('base64url')}`],
  ['phrase', 'a "secret" / with + signs = and spaces'],
]);

describe('the search for secrets', () => {
  it.each([...secrets])(
    'finds the %s in each form, wherever it stands in a text',
    (name, value) => {
      for (const [form, texts] of formsOf(value))
        for (const text of texts)
          expect(search(`before${text}after`), text).toContain(`${name} in a surface (${form})`);
    },
  );

  it.each([...secrets])('finds the %s in base64 after any number of other bytes', (name, value) => {
    for (const before of ['', 'a', 'ab', 'abc']) {
      const text = Buffer.from(`${before}${value}!`).toString('base64');
      expect(search(text), text).toContain(`${name} in a surface (base64)`);
    }
  });

  it('finds nothing in a text without a secret', () => {
    expect(search('bss_acme_another-key')).toEqual([]);
  });
});

function search(text: string): string[] {
  return findSecrets(secrets, [{ name: 'a surface', text }]);
}

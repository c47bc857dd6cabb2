import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { isIn, readAddress, readHost, readRange } from '#src/kernel/domain/egress/hosts.ts';
import {
  createJudge,
  normalizePattern,
  normalizeProxyServer,
} from '#src/kernel/domain/egress/rules.ts';
import { runs } from '#test/support/seeds/seeds.ts';

const label = fc.stringMatching(/^[a-z]([a-z0-9-]{0,8}[a-z0-9])?$/);
const name = fc.array(label, { minLength: 2, maxLength: 4 }).map((labels) => labels.join('.'));
const port = fc.integer({ min: 1, max: 65_535 });
const four = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const textOf = (value: number) => [24, 16, 8, 0].map((bits) => (value >>> bits) & 255).join('.');
const addressOf = (text: string) => {
  const address = readAddress(text);
  if (address === null) throw new Error(`not an address: ${text}`);
  return address;
};

describe('a pattern', () => {
  test.each([
    ['Example.COM', 'example.com'],
    ['example.com.', 'example.com'],
    ['example.com:443', 'example.com:443'],
    ['*.Example.com:8080', '*.example.com:8080'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['*.bücher.example', '*.xn--bcher-kva.example'],
    ['192.0.2.1', '192.0.2.1'],
    ['0x7f.1', '127.0.0.1'],
    ['192.0.2.0/24', '192.0.2.0/24'],
    ['192.0.2.0/24:80', '192.0.2.0/24:80'],
    ['2001:DB8::1', '2001:db8::1'],
    ['2001:db8::/32', '2001:db8::/32'],
    ['[2001:db8::/32]:443', '[2001:db8::/32]:443'],
  ])('%s is known as %s', (text, normalized) => {
    expect(normalizePattern(text)).toBe(normalized);
    expect(normalizePattern(normalized)).toBe(normalized);
  });

  test.each([
    ...['', '*', '*.', 'a b', 'http://example.com', 'example.com/path', 'user@example.com'],
    ...['example.com:0', 'example.com:65536', 'example.com:', '192.0.2.0/33', '192.0.2.0/-1'],
    ...['*.192.0.2.1', 'a.*.example.com', 'exa%6dple.com', '2001:db8::/129', '[::1', '1:2:3:4'],
    ...['\u0000.com', 'a..b', 'x'.repeat(64), '192.0.2.0/24/8'],
  ])('%j is none', (text) => {
    expect(normalizePattern(text)).toBeNull();
  });

  it('is in one spelling after it was normalized', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 40 }), (text) => {
        const once = normalizePattern(text);
        if (once !== null) expect(normalizePattern(once)).toBe(once);
      }),
      { numRuns: runs(300) },
    );
  });
});

describe('the rules', () => {
  it('allow all that is not denied, without allow', () => {
    fc.assert(
      fc.property(name, name, port, (denied, other, at) => {
        const judge = createJudge({ deny: [denied] });
        expect(judge.name(denied, at)).toBe('denied');
        expect(judge.name(other, at)).toBe(other === denied ? 'denied' : 'allowed');
      }),
    );
  });

  it('deny what both lists name', () => {
    fc.assert(
      fc.property(name, port, (both, at) => {
        const judge = createJudge({ allow: [both, `${both}:${at}`], deny: [`${both}:${at}`] });
        expect(judge.name(both, at)).toBe('denied');
        expect(judge.name(both, at === 1 ? 2 : 1)).toBe('allowed');
      }),
    );
  });

  it('name with *. every name below, and neither the name itself nor one that ends like it', () => {
    fc.assert(
      fc.property(name, label, port, (parent, child, at) => {
        const judge = createJudge({ allow: [`*.${parent}`], deny: [] });
        expect(judge.name(`${child}.${parent}`, at)).toBe('allowed');
        expect(judge.name(`${child}.${child}.${parent}`, at)).toBe('allowed');
        expect(judge.name(parent, at)).toBe('not_allowed');
        expect(judge.name(`${child}${parent}`, at)).toBe('not_allowed');
        // Below itself is a name of equal labels alone.
        const isBelow = parent.split('.').every((part) => part === child);
        const verdict = isBelow ? 'allowed' : 'not_allowed';
        expect(judge.name(`${parent}.${child}`, at)).toBe(verdict);
      }),
    );
  });

  it('name with a range the addresses in it, and no name', () => {
    fc.assert(
      fc.property(four, four, fc.integer({ min: 0, max: 32 }), port, (base, other, bits, at) => {
        const judge = createJudge({ allow: [`${textOf(base)}/${bits}`], deny: [] });
        const isSame = bits === 0 || base >>> (32 - bits) === other >>> (32 - bits);
        const verdict = judge.address(addressOf(textOf(other)), at);
        expect(verdict).toBe(isSame ? 'allowed' : 'not_allowed');
        expect(judge.name('example.com', at)).toBe('not_allowed');
      }),
    );
  });

  it('deny an address that an allowed name resolves to', () => {
    const judge = createJudge({ allow: ['example.com'], deny: ['198.51.100.0/24:443'] });
    expect(judge.name('example.com', 443)).toBe('allowed');
    expect(judge.deniesAddress(addressOf('198.51.100.7'), 443)).toBe(true);
    expect(judge.deniesAddress(addressOf('198.51.100.7'), 80)).toBe(false);
    expect(judge.deniesAddress(addressOf('198.51.101.7'), 443)).toBe(false);
  });
});

describe('an address', () => {
  it('of IPv4 within IPv6 is that of IPv4', () => {
    fc.assert(
      fc.property(four, (value) => {
        expect(readHost(`[::ffff:${textOf(value)}]`)).toMatchObject({
          kind: 'address',
          address: addressOf(textOf(value)),
        });
      }),
    );
  });

  it('has one number, however it is written', () => {
    const written = ['2001:db8::1', '2001:0DB8:0:0:0:0:0:1', '[2001:db8:0::1]'];
    const numbers = new Set(written.map((text) => readRange(text)?.address.value));
    expect([...numbers]).toEqual([0x2001_0db8_0000_0000_0000_0000_0000_0001n]);
  });

  it('of another family is in no range', () => {
    const all = readRange('::/0');
    expect(all !== null && isIn(all, addressOf('192.0.2.1'))).toBe(false);
    expect(all !== null && isIn(all, addressOf('2001:db8::1'))).toBe(true);
  });
});

test.each([
  ['http://proxy.example.com', 'http://proxy.example.com:80'],
  ['HTTPS://Proxy.example.com/', 'https://proxy.example.com:443'],
  ['socks5://[2001:db8::1]', 'socks5://[2001:db8::1]:1080'],
  ['socks5://198.51.100.1:9000', 'socks5://198.51.100.1:9000'],
  ['http://user:word@proxy.example.com', null],
  ['http://proxy.example.com/path', null],
  ['ftp://proxy.example.com', null],
  ['proxy.example.com:3128', null],
  ['http://', null],
  ['http://proxy.example.com:70000', null],
])('the proxy %s is known as %s', (text, normalized) => {
  expect(normalizeProxyServer(text)).toBe(normalized);
});

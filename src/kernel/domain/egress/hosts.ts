/** Names and addresses of hosts in one spelling, and ranges of addresses. Pure. */

/** A host as every comparison has it: `name` is lower case and ASCII (IDN as punycode). */
export type Host =
  | { kind: 'name'; text: string }
  | { kind: 'address'; text: string; address: Address };

/** An address as a number of 32 (IPv4) or 128 (IPv6) bits. */
export type Address = { bits: 32 | 128; value: bigint };

/** The addresses whose first `prefix` bits are those of `address`. */
export type Range = { address: Address; prefix: number };

const NAME = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/;
/** What ends a URL's host, or is decoded in it. */
const NOT_IN_HOST = /[\s/?#@\\%[\]]/;

/**
 * Reads a host as browsers do: `EXÄMPLE.com.` is `xn--exmple-cua.com`, and `0x7f.1` is 127.0.0.1.
 * An IPv6 address may be in brackets. Null: no host.
 */
export function readHost(text: string): Host | null {
  const plain = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  if (plain === '' || NOT_IN_HOST.test(plain)) return null;
  const isSix = plain.includes(':');
  const url = URL.parse(`http://${isSix ? `[${plain}]` : plain}/`);
  if (url === null || url.port !== '') return null;
  const canonical = isSix ? url.hostname.slice(1, -1) : url.hostname.replace(/\.$/, '');
  const address = readAddress(canonical);
  if (address !== null) return { kind: 'address', text: canonical, address };
  return NAME.test(canonical) ? { kind: 'name', text: canonical } : null;
}

/** An address in its canonical spelling as a number; IPv4 within IPv6 is IPv4. Null: none. */
export function readAddress(text: string): Address | null {
  if (text.includes(':')) return plainOf(readSix(text));
  const numbers = text.split('.');
  if (numbers.length !== 4 || !numbers.every((one) => /^\d{1,3}$/.test(one) && Number(one) < 256))
    return null;
  return { bits: 32, value: numbers.reduce((sum, one) => sum * 256n + BigInt(one), 0n) };
}

/** The range of `address/prefix`, or of one address. Null: neither. */
export function readRange(text: string): Range | null {
  const [host = '', prefix, more] = text.split('/');
  const found = readHost(host);
  if (found?.kind !== 'address' || more !== undefined) return null;
  const { address } = found;
  if (prefix === undefined) return { address, prefix: address.bits };
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > address.bits) return null;
  return { address, prefix: Number(prefix) };
}

/** Whether the address is in the range. */
export function isIn({ address, prefix }: Range, { bits, value }: Address): boolean {
  if (address.bits !== bits) return false;
  const rest = BigInt(bits - prefix);
  return address.value >> rest === value >> rest;
}

function readSix(text: string): bigint | null {
  const [front = '', back, more] = text.split('::');
  if (more !== undefined) return null;
  const [head, tail] = [groupsOf(front), groupsOf(back ?? '')];
  const missing = 8 - head.length - tail.length;
  if (back === undefined ? missing !== 0 : missing < 0) return null;
  const groups = [...head, ...Array.from({ length: missing }, () => '0'), ...tail];
  if (!groups.every((group) => /^[\da-f]{1,4}$/i.test(group))) return null;
  return groups.reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n);
}

/** The last two groups may be an IPv4 address. */
function groupsOf(text: string): string[] {
  if (text === '') return [];
  const groups = text.split(':');
  const four = readAddress(groups.at(-1) ?? '');
  if (four === null || !text.includes('.')) return groups;
  const [high, low] = [four.value >> 16n, four.value & 0xffffn];
  return [...groups.slice(0, -1), high.toString(16), low.toString(16)];
}

function plainOf(value: bigint | null): Address | null {
  if (value === null) return null;
  // ::ffff:0:0/96
  if (value >> 32n === 0xffffn) return { bits: 32, value: value & 0xffff_ffffn };
  return { bits: 128, value };
}

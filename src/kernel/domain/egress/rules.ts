import type { EgressRules } from '#events/egress.ts';
import { isIn, readHost, readRange, type Address, type Range } from './hosts.ts';

/** Which hosts a session's browser may connect to. Pure. */

/** What one pattern is about; `port` null: any. */
type Pattern = { port: number | null } & (
  | { kind: 'name'; name: string }
  /** All names below it, but not the name itself. */
  | { kind: 'below'; name: string }
  | { kind: 'range'; range: Range }
);

/** denied: a pattern of `deny` names it. not_allowed: there is `allow`, and it does not name it. */
export type Verdict = 'allowed' | 'denied' | 'not_allowed';

export type Judge = {
  /** A name that is allowed may still resolve to a denied address. */
  name(name: string, port: number): Verdict;
  /** An address that the browser named itself. */
  address(address: Address, port: number): Verdict;
  /** Whether an address that an allowed name resolves to is denied. */
  deniesAddress(address: Address, port: number): boolean;
};

/**
 * Brings a pattern into its one spelling: `*.Example.COM:443` is `*.example.com:443`. Patterns are
 * a host name, `*.` and a name (every name below it), an address or a range of addresses
 * (`192.0.2.0/24`), each with `:port` or without; an IPv6 one with a port is in brackets. Null: it
 * is none of these.
 */
export function normalizePattern(text: string): string | null {
  const pattern = readPattern(text);
  if (pattern === null) return null;
  const { port } = pattern;
  const end = port === null ? '' : `:${port}`;
  if (pattern.kind === 'name') return pattern.name + end;
  if (pattern.kind === 'below') return `*.${pattern.name}${end}`;
  const [host = '', prefix] = hostAndPort(text).host.split('/');
  const address = readHost(host)?.text ?? '';
  const range = prefix === undefined ? address : `${address}/${Number(prefix)}`;
  return address.includes(':') && port !== null ? `[${range}]${end}` : range + end;
}

/** Judges hosts by the rules, whose patterns are normalized. */
export function createJudge({ allow, deny }: Pick<EgressRules, 'allow' | 'deny'>): Judge {
  const [allowed, denied] = [allow?.map(known) ?? null, deny.map(known)];
  const verdict = (matches: (pattern: Pattern) => boolean): Verdict => {
    if (denied.some(matches)) return 'denied';
    return allowed === null || allowed.some(matches) ? 'allowed' : 'not_allowed';
  };
  return {
    name: (name, port) => verdict((pattern) => matchesName(pattern, name, port)),
    address: (address, port) => verdict((pattern) => matchesAddress(pattern, address, port)),
    deniesAddress: (address, port) =>
      denied.some((pattern) => matchesAddress(pattern, address, port)),
  };
}

function matchesName(pattern: Pattern, name: string, port: number): boolean {
  if (pattern.kind === 'range' || !isPort(pattern, port)) return false;
  return pattern.kind === 'name' ? name === pattern.name : name.endsWith(`.${pattern.name}`);
}

function matchesAddress(pattern: Pattern, address: Address, port: number): boolean {
  return pattern.kind === 'range' && isPort(pattern, port) && isIn(pattern.range, address);
}

function isPort(pattern: Pattern, port: number): boolean {
  return pattern.port === null || pattern.port === port;
}

function known(text: string): Pattern {
  const pattern = readPattern(text);
  if (pattern === null) throw new RangeError(`not a pattern of hosts: ${text}`);
  return pattern;
}

function readPattern(text: string): Pattern | null {
  const { host, port } = hostAndPort(text);
  if (port !== null && (port < 1 || port > 65_535)) return null;
  if (host.startsWith('*.')) {
    const found = readHost(host.slice(2));
    return found?.kind === 'name' ? { kind: 'below', name: found.text, port } : null;
  }
  const range = readRange(host);
  if (range !== null) return { kind: 'range', range, port };
  const found = readHost(host);
  return found?.kind === 'name' ? { kind: 'name', name: found.text, port } : null;
}

/** Splits off `:port`; a text with more colons and without brackets is an IPv6 address or range. */
function hostAndPort(text: string): { host: string; port: number | null } {
  const [, inBrackets, portBehind] = /^\[([^\]]*)\](?::(\d{1,5}))?$/.exec(text) ?? [];
  if (inBrackets !== undefined)
    return { host: inBrackets, port: portBehind === undefined ? null : Number(portBehind) };
  const [, host, port] = /^([^:]*):(\d{1,5})$/.exec(text) ?? [];
  return host === undefined ? { host: text, port: null } : { host, port: Number(port) };
}

const PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443, 'socks5:': 1080 };

/**
 * Brings the address of a proxy into its one spelling, with its port: `http://`, `https://` or
 * `socks5://` and a host. Null: it is no such address, or has a path or credentials in it.
 */
export function normalizeProxyServer(text: string): string | null {
  const [, scheme = '', place = ''] = /^(https?:|socks5:)\/\/([^/?#@]+)\/?$/i.exec(text) ?? [];
  const { host, port } = hostAndPort(place);
  const found = readHost(host);
  const { [scheme.toLowerCase()]: usual } = PORTS;
  const at = port ?? usual;
  if (found === null || at === undefined || at < 1 || at > 65_535) return null;
  const name = found.text.includes(':') ? `[${found.text}]` : found.text;
  return `${scheme.toLowerCase()}//${name}:${at}`;
}

import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { withHeader, type Parts } from './parts.ts';
import type { Random } from './random.ts';
import { hostileText, hostileValue } from './values.ts';

/** A request of which something is changed. */
export type Mutation = (random: Random, parts: Parts) => Parts;

const METHODS = ['GET', 'HEAD', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS', 'TRACE', 'get', 'X'];
const BOMB = gzipSync(Buffer.alloc(30 * 1024 * 1024));
const DEEP = 20_000;

/** Each changes one thing; a hostile request has up to three of them. */
const mutations: Readonly<Record<string, Mutation>> = {
  method: (random, parts) => ({ ...parts, method: random.pick(METHODS) }),
  segment(random, parts) {
    const segments = parts.path.split('/');
    segments[1 + random.int(Math.max(1, segments.length - 1))] = segmentText(random);
    return { ...parts, path: segments.join('/') };
  },
  path(random, parts) {
    const { path } = parts;
    const at = random.int(path.length);
    const between = escaped(random, hostileText(random));
    return { ...parts, path: path.slice(0, at) + between + path.slice(at + random.int(4)) };
  },
  target: (random, parts) => ({
    ...parts,
    path: random.pick([
      ...['*', '//', `//evil${parts.path}`, `http://evil/${parts.path}`, `${parts.path}/`],
      ...[`${parts.path}%2f..%2f..`, `${parts.path}%00`, `${parts.path};a=b`, `${parts.path}#a`],
      ...[parts.path.toUpperCase(), parts.path.replaceAll('/', '%2F'), `${parts.path}/../..`],
    ]),
  }),
  query(random, parts) {
    const query = parts.query.map(([name, value]): [string, string] =>
      random.chance(0.6) ? [name, escaped(random, cursor(random))] : [name, value],
    );
    if (random.chance(0.4)) query.push(...query.slice(0, 1));
    if (random.chance(0.4) || query.length === 0) {
      const name = random.pick(['limit', 'after', 'offset', 'as_of', 'from', 'label', 'type', 'x']);
      query.push([name, escaped(random, cursor(random))]);
    }
    return { ...parts, query };
  },
  header: (random, parts) => withHeader(parts, ...random.pick(HEADERS)(random)),
  credential: (random, parts) =>
    withHeader(parts, 'authorization', random.pick(CREDENTIALS)(random)),
  type: (random, parts) => withHeader(parts, 'content-type', random.pick(TYPES)),
  text: (random, parts) => ({ ...parts, body: random.pick(TEXTS)(random, parts.body) }),
  bytes: (random, parts) => ({ ...parts, body: corrupted(random, parts.body ?? Buffer.of(0)) }),
  coding(random, parts) {
    const [name, body] = random.pick(CODINGS)(random, parts.body ?? Buffer.from('{}'));
    return { ...withHeader(parts, 'content-encoding', name), body };
  },
  framing: (random, parts) => ({
    ...parts,
    body: parts.body ?? Buffer.from('{}'),
    framing: random.pick(['chunked', 'chunked', 'more', 'less', 'both', 'broken']),
  }),
};

/** The request with one to three of its sides changed. */
export function mutated(random: Random, parts: Parts): Parts {
  const names = Object.keys(mutations);
  let changed = parts;
  for (let times = 0; times <= random.int(3); times += 1)
    changed = mutations[random.pick(names)]?.(random, changed) ?? changed;
  return changed;
}

/** The bytes with some of them replaced, removed or repeated. */
export function corrupted(random: Random, bytes: Buffer): Buffer {
  let changed = Buffer.from(bytes);
  for (let change = 0; change <= random.int(6); change += 1) {
    const at = random.int(Math.max(1, changed.length));
    const length = random.int(12);
    const [before, after] = [changed.subarray(0, at), changed.subarray(at + length)];
    const between = random.chance(0.5)
      ? random.bytes(random.int(8))
      : changed.subarray(at, at + length * 2);
    changed = Buffer.concat([before, between, after]);
  }
  return changed;
}

function segmentText(random: Random): string {
  return random.pick([
    ...[
      '..',
      '.',
      '%2e%2e',
      '%2e%2e%2f%2e%2e',
      '%2F',
      '%5c..',
      '%00',
      'a%00b',
      '%ff%fe',
      '%',
      '%zz',
    ],
    ...['a'.repeat(300), 'a'.repeat(20_000), '%F0%9F%91%A9', '%ED%A0%80', '*', '%3E', 'con', ''],
    ...['__proto__', 'constructor', 'toString', '0', '-1', '1e999', ' ', '%20', '%0d%0aX-A:1'],
    escaped(random, hostileText(random)),
  ]);
}

/** Percent-encoded, mostly. */
function escaped(random: Random, text: string): string {
  return random.chance(0.05) ? text : encodeURIComponent(text.toWellFormed());
}

/** What a cursor, a moment or a number may be given as. */
function cursor(random: Random): string {
  return random.pick([
    ...['0', '-1', '1', '101', '1e3', '999999999999999', '9007199254740993', '1.5', ' 1'],
    ...['2026-11-28T10:00:00Z', '1970-01-01T00:00:00Z', '9999-12-31T23:59:59Z', '2026-02-30'],
    ...['+275760-09-13T00:00:00Z', '2026-11-28T10:00:00+14:00', '2026-11-28T10:00:00.123456789Z'],
    ...['eyJhIjoxfQ', 'ses_none', 'a=b', '=', 'a', 'null', '[]', '{}'],
    hostileText(random),
  ]);
}

type Header = (random: Random) => [string, string];
const hostile = (name: string): Header => {
  return (random) => [name, lineOf(hostileText(random))];
};
const oneOf =
  (name: string, ...values: string[]): Header =>
  (random) => [name, random.pick(values)];

/** Of one line, mostly: as a client's library would let it pass. */
function lineOf(text: string): string {
  return text.replaceAll(/[\r\n]/g, ' ');
}

const RANGES = [
  'bytes=0-0',
  'bytes=-1',
  'bytes=5-2',
  'bytes=0-',
  'bytes=999999999999-',
  'bytes=a-b',
];
const MANY = `bytes=${Array.from({ length: 200 }, (_, at) => `${at}-${at}`).join(',')}`;
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const HEADERS: readonly Header[] = [
  oneOf('range', ...RANGES, MANY, 'items=0-1', 'bytes=', 'bytes=0-1, 0-1'),
  oneOf('if-none-match', '*', '"a"', 'W/"a"', '"a", "b"', 'a', '"', '"'.repeat(500)),
  oneOf('if-match', '*', '"a"', '""'),
  oneOf('if-range', '"a"', 'Sat, 28 Nov 2026 10:00:00 GMT', 'x'),
  oneOf('if-modified-since', 'Sat, 28 Nov 2026 10:00:00 GMT', 'yesterday', '0'),
  oneOf('if-unmodified-since', 'Thu, 01 Jan 1970 00:00:00 GMT', 'x'),
  oneOf('idempotency-key', 'a', 'a'.repeat(256), 'a'.repeat(5_000), '"', '\u00e9\u00ff', ' '),
  oneOf('prefer', 'respond-async', 'wait=0', 'wait=-1', 'wait=1e9', 'respond-async, wait=1', ';;'),
  oneOf('traceparent', TRACE, TRACE.replace('00-', 'ff-'), '00-0-0-0', TRACE.repeat(20)),
  oneOf('tracestate', 'a=b', 'a=b,'.repeat(400), '='),
  oneOf('expect', '100-continue', '200-ok', ''),
  oneOf('connection', 'close', 'upgrade', 'keep-alive, close', 'x'),
  oneOf('upgrade', 'websocket', 'h2c', 'TLS/1.0'),
  oneOf('transfer-encoding', 'gzip', 'chunked, chunked', 'identity', 'xchunked', 'gzip, chunked'),
  oneOf('content-length', '0', '-1', '+5', '99999999999999999999', '1e3', '5, 5', '0x5'),
  oneOf('accept-encoding', 'gzip;q=0', '*;q=0', 'br, gzip', 'identity;q=0, *;q=0', ','.repeat(300)),
  oneOf('accept', 'text/html', '*/*;q=0', 'application/json, text/event-stream', 'x'),
  oneOf('last-event-id', '0', '1', '-1', '999999999999999', 'x', '1.5', '9'.repeat(40)),
  oneOf('host', '', 'localhost:99999', '[::1', 'a'.repeat(300), 'evil.example', 'x y', '..'),
  oneOf(
    'x-forwarded-for',
    '',
    'unknown',
    '::1',
    '1.2.3.4, 5.6.7.8',
    '999.1.1.1',
    'a'.repeat(2_000),
  ),
  oneOf('x-forwarded-proto', 'https', 'gopher', ''),
  oneOf('x-forwarded-host', 'evil.example', '', 'a b'),
  oneOf('origin', 'null', 'https://evil.example', 'http://localhost', '::', ''),
  oneOf('mcp-session-id', 'none', 'a'.repeat(500), '*', '>'),
  oneOf('mcp-protocol-version', '2025-06-18', '1999-01-01', 'x'),
  oneOf('cookie', 'a=b', 'a='.repeat(2_000)),
  oneOf('user-agent', '', 'a'.repeat(3_000), '\u0080\u00ff'),
  oneOf('x-big', 'a'.repeat(60_000), 'a'.repeat(90_000)),
  oneOf('x-http-method-override', 'DELETE'),
  oneOf('sec-websocket-version', '12', '13', 'x'),
  oneOf('sec-websocket-key', 'short', 'AAAAAAAAAAAAAAAAAAAAAA==', ''),
  oneOf('sec-websocket-protocol', 'binary', 'base64', 'a'.repeat(300), ','),
  oneOf('sec-websocket-extensions', 'permessage-deflate', 'permessage-deflate; x=1', ','),
  hostile('x-request-id'),
  hostile('idempotency-key'),
  hostile('if-none-match'),
  hostile('last-event-id'),
  hostile('content-type'),
  hostile('x-bss-ticket'),
  (random) => [lineOf(hostileText(random)) || 'x', 'a'],
  (random) => ['x', hostileText(random)],
];

const CREDENTIALS: readonly ((random: Random) => string)[] = [
  () => '',
  () => 'Bearer',
  () => 'Bearer ',
  () => 'Basic Og==',
  () => 'Basic %%%',
  () => `Bearer ${'a'.repeat(70_000)}`,
  () => 'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.',
  () => `Bearer ${Buffer.from('{"alg":"RS256","kid":"../x"}').toString('base64url')}.e30.AAAA`,
  (random) => `Bearer ${lineOf(hostileText(random))}`,
];

const TYPES = [
  ...['application/json', 'application/json; charset=latin1', 'application/json;charset=utf-16le'],
  ...['application/json; charset="', 'application/json; charset=nothing', 'text/plain', 'x', '/'],
  ...['application/x-www-form-urlencoded', 'multipart/form-data', 'application/zip', ' '],
  ...['multipart/form-data; boundary=a', 'application/octet-stream', 'application/json-patch+json'],
];

type Text = (random: Random, body: Buffer | null) => Buffer;
const of = (text: string): Text => {
  const bytes = Buffer.from(text);
  return () => bytes;
};
const TEXTS: readonly Text[] = [
  of(''),
  of('{'),
  of('nul'),
  of('"text"'),
  of('[]'),
  of('{}'),
  of('{"a":1}{"b":2}'),
  of('\ufeff{}'),
  of('{"__proto__":{"status":"x"}}'),
  of('{"constructor":{"prototype":{"x":1}}}'),
  of('{"duration":"1h","duration":"2h"}'),
  of('{"duration":1e999}'),
  of(`{"duration":${'9'.repeat(400)}}`),
  of('{"session_name":"\\u0000"}'),
  of('{"session_name":"\\ud800"}'),
  of('['.repeat(DEEP) + ']'.repeat(DEEP)),
  of('{"a":'.repeat(DEEP) + '1' + '}'.repeat(DEEP)),
  of(`{"labels":{${Array.from({ length: 3_000 }, (_, at) => `"k${at}":"v"`).join(',')}}}`),
  of(`{"url":"https://${'a'.repeat(15_000)}.example"}`),
  of(`{"description":"${'x'.repeat(70_000)}"}`),
  of(`{"description":"${'x'.repeat(1_200_000)}"}`),
  () => Buffer.from('{"session_name":"caf\u00e9"}', 'latin1'),
  () => Buffer.from('{"session_name":"caf\u00e9"}', 'utf16le'),
  (random) => random.bytes(1 + random.int(200)),
  (random, body) => (body ?? Buffer.from('{}')).subarray(0, random.int(body?.length ?? 2)),
  (random) => Buffer.from(JSON.stringify(hostileValue(random)) ?? 'null'),
];

type Coded = (random: Random, body: Buffer) => [string, Buffer];
const CODINGS: readonly Coded[] = [
  (_, body) => ['gzip', gzipSync(body)],
  (_, body) => ['x-gzip', gzipSync(body)],
  (_, body) => ['deflate', deflateSync(body)],
  (_, body) => ['br', brotliCompressSync(body)],
  (_, body) => ['gzip', body],
  (_, body) => ['br', body],
  (random, body) => ['gzip', gzipSync(body).subarray(0, 5 + random.int(15))],
  (random, body) => ['deflate', corrupted(random, deflateSync(body))],
  (_, body) => ['gzip, gzip', gzipSync(gzipSync(body))],
  (_, body) => ['identity', body],
  (_, body) => ['zstd', body],
  (_, body) => ['__proto__', body],
  () => ['gzip', BOMB],
  () => ['deflate', deflateSync(BOMB)],
  () => ['gzip', Buffer.concat([gzipSync('{}'), BOMB])],
];

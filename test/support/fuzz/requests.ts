import type { DocumentOperation, OpenApiDocument } from '#src/api/docs/openapi-document.ts';
import type { Random } from './random.ts';
import { hostileText, hostileValue, nearly } from './values.ts';

/** Parts of valid requests, which the fuzzed ones are made of. */
export type Known = {
  document: OpenApiDocument;
  key: string;
  operatorToken: string;
  /** Sessions that may be changed and stopped. */
  sessionIds: readonly string[];
  /** Paths of the gateway, with tickets that open. */
  gatewayPaths: readonly string[];
};

const METHODS = ['GET', 'HEAD', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS', 'TRACE', 'get', 'X'];
/** So often is a part of a request hostile. */
const HOSTILE = 0.12;

/** A request of an operation of the document, nearly valid. */
export function apiRequest(random: Random, known: Known): Buffer {
  const { document, sessionIds } = known;
  const operations = Object.entries(document.paths).flatMap(([template, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ template, method, operation })),
  );
  const { template, method, operation } = random.pick(operations);
  const id = () => (random.chance(0.7) ? random.pick(sessionIds) : hostileText(random));
  const path = template.replace(/\{[^}]+\}/g, () =>
    template.includes('/keys') ? encode(random, hostileText(random)) : encode(random, id()),
  );
  const key = template.startsWith('/api/operator') ? known.operatorToken : known.key;
  const headers: [string, string][] = [
    ['authorization', random.chance(1 - HOSTILE) ? `Bearer ${key}` : hostileText(random)],
    ['prefer', 'respond-async'],
  ];
  if (random.chance(HOSTILE)) headers.push(['idempotency-key', hostileText(random)]);
  if (random.chance(HOSTILE)) headers.push(['if-none-match', hostileText(random)]);
  if (random.chance(HOSTILE)) headers.push(['last-event-id', hostileText(random)]);
  return bytesOf(random, {
    method: random.chance(HOSTILE) ? random.pick(METHODS) : method.toUpperCase(),
    target: path + queryOf(random, operation),
    headers,
    body: bodyOf(random, document, operation),
  });
}

/** A request to the gateway: documents, viewer page and its state, and what is near to them. */
export function gatewayRequest(random: Random, { gatewayPaths }: Known): Buffer {
  const paths = [...gatewayPaths, '/viewer/viewer.js', '/viewer/core/rfb.js', '/', '/devtools/x'];
  return bytesOf(random, {
    method: random.chance(HOSTILE) ? random.pick(METHODS) : 'GET',
    target: altered(random, random.pick(paths)),
    headers: [],
    body: null,
  });
}

/** A WebSocket handshake, nearly valid, and some bytes behind it. */
export function handshake(random: Random, path: string): Buffer {
  const maybe = (name: string, value: string): [string, string][] =>
    random.chance(HOSTILE) ? [[name, hostileText(random)]] : [[name, value]];
  const head = bytesOf(random, {
    method: 'GET',
    target: random.chance(0.3) ? altered(random, path) : path,
    headers: [
      ...maybe('upgrade', 'websocket'),
      ...maybe('connection', 'Upgrade'),
      ...maybe('sec-websocket-version', '13'),
      ...maybe('sec-websocket-key', random.bytes(16).toString('base64')),
      ...maybe('sec-websocket-protocol', 'binary'),
    ],
    body: null,
  });
  return head;
}

/** What a client may send after a handshake: frames of any kind, complete and broken ones. */
export function frames(random: Random): Buffer {
  const some = Array.from({ length: 1 + random.int(6) }, () => {
    const payload = random.chance(0.4)
      ? Buffer.from(JSON.stringify({ id: random.int(9), method: hostileValue(random) }))
      : random.bytes(random.int(60));
    const first = random.chance(0.7) ? random.pick([0x81, 0x82, 0x89, 0x8a]) : random.int(256);
    const length = random.chance(0.9) ? payload.length & 0x7f : random.int(128);
    return Buffer.concat([Buffer.from([first, 0x80 | length]), random.bytes(4), payload]);
  });
  return Buffer.concat(some);
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

function queryOf(random: Random, operation: Partial<DocumentOperation>): string {
  const { parameters = [] } = operation;
  const pairs = parameters
    .filter((parameter) => parameter.in === 'query' && random.chance(0.4))
    .map(({ name, schema }) => {
      const value = nearly(random, schema, HOSTILE);
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      return `${name}=${encode(random, text)}`;
    });
  if (random.chance(HOSTILE))
    pairs.push(`${encode(random, hostileText(random))}=${encode(random, hostileText(random))}`);
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

/** The document's example with a field that is added, changed or removed now and then. */
function bodyOf(
  random: Random,
  { components }: OpenApiDocument,
  { requestBody }: DocumentOperation,
): string | null {
  const content = requestBody?.content['application/json'];
  if (content === undefined) return random.chance(HOSTILE) ? '{}' : null;
  if (random.chance(HOSTILE)) return hostileText(random);
  const name = content.schema.$ref?.split('/').at(-1) ?? '';
  const fields = Object.entries(components.schemas[name]?.properties ?? {});
  const body: Record<string, unknown> = { ...(content.example as object) };
  while (random.chance(0.5)) {
    const [field, schema] = random.pick(fields);
    body[field] = nearly(random, schema, 2 * HOSTILE);
  }
  if (random.chance(HOSTILE)) delete body[random.pick(fields)[0]];
  return JSON.stringify(random.chance(HOSTILE) ? hostileValue(random) : body) ?? 'null';
}

/** A path with a piece of it changed. */
function altered(random: Random, path: string): string {
  if (random.chance(0.5)) return path;
  const at = random.int(path.length);
  return path.slice(0, at) + encode(random, hostileText(random)) + path.slice(at + random.int(4));
}

/** Percent-encoded, mostly. */
function encode(random: Random, text: string): string {
  if (random.chance(HOSTILE / 4)) return text;
  return encodeURIComponent(text.toWellFormed());
}

type Request = {
  method: string;
  target: string;
  headers: [string, string][];
  body: string | null;
};

/** The address of a client behind a trusted proxy: limits by address are not what is tested. */
function clientAddress(random: Random): string {
  return `10.${random.int(256)}.${random.int(256)}.${random.int(256)}`;
}

function bytesOf(random: Random, { method, target, headers, body }: Request): Buffer {
  const all: [string, string][] = [
    ['host', random.chance(HOSTILE / 4) ? hostileText(random) : 'localhost'],
    ['x-forwarded-for', clientAddress(random)],
    ...headers,
  ];
  const type = random.chance(HOSTILE) ? hostileText(random) : 'application/json';
  if (body !== null)
    all.push(['content-type', type], ['content-length', `${Buffer.byteLength(body)}`]);
  const lines = all.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const head = `${method} ${target} HTTP/1.1\r\n${lines}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body ?? '')]);
}

import type { Random } from './random.ts';

/** How a body is framed: `more` and `less` than its length are lies. */
export type Framing = 'length' | 'chunked' | 'more' | 'less' | 'both' | 'broken';

/** A request before it is bytes. */
export type Parts = {
  method: string;
  /** Percent-encoded. */
  path: string;
  query: [string, string][];
  headers: [string, string][];
  body: Buffer | null;
  framing: Framing;
};

/** Of the four sides of a request; what is left out is empty. */
export function partsOf(given: Partial<Parts> & { path: string }): Parts {
  return { method: 'GET', query: [], headers: [], body: null, framing: 'length', ...given };
}

/** A JSON body with its type. */
export function jsonBody(value: unknown): Pick<Parts, 'body'> {
  return { body: Buffer.from(JSON.stringify(value) ?? 'null') };
}

export function withHeader(parts: Parts, name: string, value: string): Parts {
  const others = parts.headers.filter(([known]) => known !== name);
  return { ...parts, headers: [...others, [name, value]] };
}

/** The request as it goes over the wire. */
export function bytesOf(random: Random, parts: Parts): Buffer {
  const { method, path, query, body, framing } = parts;
  const pairs = query.map(([name, value]) => `${name}=${value}`);
  const target = pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;
  const headers = body === null ? parts.headers : [...parts.headers, ...framingOf(parts)];
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines}\r\n`, 'latin1');
  if (body === null) return head;
  const isChunked = framing === 'chunked' || framing === 'both' || framing === 'broken';
  return Buffer.concat([head, isChunked ? chunked(random, body, framing === 'broken') : body]);
}

function framingOf({ body, framing }: Parts): [string, string][] {
  const length = body?.length ?? 0;
  const coded: [string, string] = ['transfer-encoding', 'chunked'];
  switch (framing) {
    case 'length':
      return [['content-length', `${length}`]];
    case 'more':
      return [['content-length', `${length + 17}`]];
    case 'less':
      return [['content-length', `${Math.max(0, length - 5)}`]];
    case 'both':
      return [['content-length', `${length}`], coded];
    default:
      return [coded];
  }
}

function chunked(random: Random, body: Buffer, isBroken: boolean): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length;) {
    const piece = body.subarray(at, at + 1 + random.int(Math.max(1, body.length)));
    at += piece.length;
    const size = isBroken && random.chance(0.5) ? random.pick(SIZES) : piece.length.toString(16);
    pieces.push(Buffer.from(`${size}${random.chance(0.1) ? ';a=b' : ''}\r\n`), piece);
    pieces.push(Buffer.from('\r\n'));
  }
  const trailer = random.chance(0.1) ? 'X-Trailer: 1\r\n' : '';
  return Buffer.concat([...pieces, Buffer.from(`0\r\n${trailer}\r\n`)]);
}

const SIZES = ['-1', 'ffffffffffffffff', 'zz', '', '0x10', '1_0', '00000000000000000001'];

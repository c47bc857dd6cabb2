import { Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { invalid } from './validation.ts';

/**
 * Bodies in a content coding, and texts in a charset. What cannot be read is refused: taken as it
 * is, it would be stored as it is.
 */

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};
const KNOWN = 'gzip, deflate, br';
/** Of a name that an answer repeats. */
const NAME_MAX = 64;

/** A body that cannot be read as its headers say. */
export class Unreadable extends Error {
  override readonly name = 'Unreadable';
  readonly rejection: Rejection;
  constructor(rejection: Rejection) {
    super(rejection.message);
    this.rejection = rejection;
  }
}

/**
 * Decodes each body before it is read. A route's bounds hold for what comes out: its reader stops
 * there, and nothing more is decoded then.
 */
export function decodeBodies(server: FastifyInstance): void {
  server.addHook('preParsing', (request, reply, payload, done) => {
    const coding = codingOf(request);
    if (coding === null) return done(null, payload);
    const create = Object.hasOwn(DECODERS, coding) ? DECODERS[coding] : undefined;
    if (create !== undefined) return done(null, decode(payload as Readable, coding, create()));
    void reply.headers({ 'accept-encoding': KNOWN, connection: 'close' });
    const message = `The coding ${coding} of the body is not read here: ${KNOWN}, or none.`;
    done(new Unreadable(reject('UNSUPPORTED_MEDIA_TYPE', {}, { message })));
  });
}

/** The coding of a request's body; null: it has none, or there is no body. */
export function codingOf({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  const { 'content-length': length, 'transfer-encoding': transfer } = headers;
  const coding = headers['content-encoding']?.trim().toLowerCase().slice(0, NAME_MAX) ?? '';
  const isEmpty = transfer === undefined && Number(length ?? 0) === 0;
  return isEmpty || coding === '' || coding === 'identity' ? null : coding;
}

/**
 * What comes out of the decoder, which gets nothing before the first read. Not every body is read,
 * or to its end: an error of one of the three streams that no reader waits for must end nothing.
 */
function decode(payload: Readable, coding: string, decoder: Transform) {
  let received = 0;
  async function* counted() {
    for await (const piece of payload as AsyncIterable<Buffer>) {
      received += piece.length;
      yield piece;
    }
  }
  const source = Readable.from(counted(), { objectMode: false });
  async function* pieces() {
    try {
      source.pipe(decoder);
      // Piece by piece, as the reader asks for them.
      yield* decoder as AsyncIterable<Buffer>;
    } catch (error) {
      if (!isOfDecoder(error)) throw error;
      throw new Unreadable(invalid({}, `The body is not valid ${coding}.`));
    }
  }
  const output = Readable.from(pieces(), { objectMode: false });
  for (const stream of [decoder, output]) stream.on('error', () => undefined);
  source.on('error', (error) => decoder.destroy(error));
  output.once('close', () => source.destroy());
  // Fastify compares it with the Content-Length.
  return Object.defineProperty(output, 'receivedEncodedLength', { get: () => received });
}

/** zlib's own errors, of the data: its source's have other codes, or no number. */
function isOfDecoder(error: unknown): boolean {
  const { code, errno } = error as { code?: unknown; errno?: unknown };
  return typeof errno === 'number' && /^(?:Z|ERR)_/.test(String(code));
}

/**
 * The text of a body in the charset of its `Content-Type`, without that in UTF-8.
 * @throws Unreadable
 */
export function readText(body: Buffer, contentType: string | undefined): string {
  const [, charset = 'utf-8'] = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType ?? '') ?? [];
  let decoder: InstanceType<typeof TextDecoder>;
  try {
    decoder = new TextDecoder(charset, { fatal: true });
  } catch {
    const message = `The charset ${charset.slice(0, NAME_MAX)} of the body is not known.`;
    throw new Unreadable(reject('UNSUPPORTED_MEDIA_TYPE', {}, { message }));
  }
  try {
    return decoder.decode(body);
  } catch {
    const message = `The body is not valid ${charset.slice(0, NAME_MAX).toUpperCase()}.`;
    throw new Unreadable(invalid({}, message));
  }
}

import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** A document with its bytes in both forms: a request for it costs no rendering or compression. */
export type PreparedDocument = {
  plain: Buffer;
  compressed: Buffer;
  headers: Readonly<Record<string, string>>;
};

/** @param headers of every answer with the document; the content type is among them */
export async function prepareDocument(
  text: string,
  headers: Record<string, string>,
): Promise<PreparedDocument> {
  const plain = Buffer.from(text);
  const hash = createHash('sha256').update(plain).digest('base64url').slice(0, 22);
  return {
    plain,
    compressed: await promisify(gzip)(plain),
    headers: {
      ...headers,
      // Weak: the same for both forms.
      etag: `W/"${hash}"`,
      vary: 'accept-encoding',
      // Kept, but asked for each time: a new version of the service has new documents.
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
    },
  };
}

/** Answers with the document, or with 304 to a client that has it. */
export function sendDocument(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  document: PreparedDocument,
): FastifyReply {
  void reply.headers(document.headers);
  if (hasMatch(headers['if-none-match'], document.headers['etag'] ?? ''))
    return reply.removeHeader('content-type').code(304).send();
  if (!acceptsCoding(headers['accept-encoding'], 'gzip')) return reply.send(document.plain);
  return reply.header('content-encoding', 'gzip').send(document.compressed);
}

export function hasMatch(sent: string | undefined, etag: string): boolean {
  if (sent === undefined) return false;
  const strong = etag.slice('W/'.length);
  const sentTags = sent.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return sentTags.some((tag) => tag === '*' || tag === strong);
}

/** Whether a client accepts a content coding, by its `Accept-Encoding`. */
export function acceptsCoding(sent: string | string[] | undefined, wanted: string): boolean {
  const offers = String(sent ?? '').split(',');
  return offers.some((offer) => {
    const [coding = '', ...parameters] = offer.split(';').map((part) => part.trim().toLowerCase());
    const isRefused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    return coding === wanted && !isRefused;
  });
}

import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { PAGES } from '#src/dashboard/pages.ts';
import { reject } from '#src/errors.ts';
import {
  pageAt,
  type DashboardFile,
  type DashboardFiles,
} from '../../dashboard/dashboard-files.ts';
import { acceptsCoding, hasMatch } from '../../docs/prepared-document.ts';
import { sendRejection } from '../../http/error-response.ts';
import type { ApiServer } from '../../http/route.ts';

/**
 * The files are in memory and cost less than to count them. A page takes some ten, and all browsers
 * behind one address would share what the limit of strangers allows.
 */
const config = { action: 'public', isUnlimited: true, refusals: ['NOT_FOUND'] } as const;
/** Filters and moments are for the script alone. */
const querystring = Type.Object({}, { additionalProperties: true });

/** The dashboard, from memory; where it was not built, its addresses answer NOT_FOUND. */
export function serveDashboard(server: ApiServer, files: DashboardFiles): void {
  for (const { path: url } of Object.values(PAGES))
    server.route({
      method: 'GET',
      url,
      schema: { hide: true, querystring },
      config,
      handler: (request, reply) => send(request, reply, files.get(pageAt(url))),
    });
  server.route({
    method: 'GET',
    url: '/assets/:file',
    schema: { hide: true, params: Type.Object({ file: Type.String() }) },
    config,
    handler: (request, reply) => send(request, reply, files.get(`assets/${request.params.file}`)),
  });
}

function send(request: FastifyRequest, reply: FastifyReply, file: DashboardFile | undefined) {
  if (file === undefined) return sendRejection(reply, reject('NOT_FOUND', { path: request.url }));
  const { 'accept-encoding': codings, 'if-none-match': known } = request.headers;
  void reply.headers(file.headers);
  if (hasMatch(known, file.headers['etag'] ?? ''))
    return reply.removeHeader('content-type').code(304).send();
  const coding = (['br', 'gzip'] as const).find((name) => acceptsCoding(codings, name));
  if (coding === undefined) return reply.send(file.body.identity);
  return reply.header('content-encoding', coding).send(file.body[coding]);
}

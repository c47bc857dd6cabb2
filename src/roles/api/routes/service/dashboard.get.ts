import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { PAGES } from '#src/roles/api/dashboard/pages.ts';
import { reject } from '#src/kernel/errors.ts';
import {
  pageAt,
  LICENCES_FILE,
  type DashboardFile,
  type DashboardFiles,
} from '../../dashboard/dashboard-files.ts';
import { acceptsCoding, hasMatch } from '../../docs/prepared-document.ts';
import { sendRejection } from '../../http/error-response.ts';
import { emptyResponse, response, type ApiServer } from '../../http/route.ts';

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
  server.route({
    method: 'GET',
    url: '/licenses',
    schema: {
      operationId: 'getLicenses',
      tags: ['Service'],
      summary: 'Licences of what the service is distributed with',
      description:
        'The text of each, and the packages that it is of. Needs no credential, and counts ' +
        'towards the rate limit of the address.',
      response: {
        200: response('The licences', Type.String(), {
          contentType: 'text/plain',
          headers: { ETag: Type.String({ description: 'for `If-None-Match`' }) },
        }),
        304: emptyResponse('The client has it: `If-None-Match` names its `ETag`'),
      },
    },
    config: { action: 'public', refusals: ['NOT_FOUND'] },
    handler: (request, reply) => send(request, reply, files.get(LICENCES_FILE)),
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

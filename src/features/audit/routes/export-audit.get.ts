import { Type, type Static } from 'typebox';
import { scopeOf } from '#src/features/audit/scope.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { readMomentOrDate } from '#src/kernel/moment.ts';
import { createAuditExports, type AuditSource } from './audit-exports.ts';
import type { ApiDependencies } from '#src/roles/api/dependencies.ts';
import { acceptsCoding } from '#src/roles/api/docs/prepared-document.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { response, type ApiServer } from '#src/roles/api/http/route.ts';
import { timeParameter } from '#src/roles/api/schemas/time-parameter.ts';

const AuditQuery = Type.Object(
  {
    from: timeParameter('from', 'RFC 3339, or a date in UTC; default: the first event'),
    to: timeParameter('to', 'up to there, not included; default: now'),
  },
  { additionalProperties: false },
);

/** GET /api/audit/export: the organization's records, chained and signed, as NDJSON. */
export function exportAudit(
  server: ApiServer,
  dependencies: Pick<ApiDependencies, 'context'> & { audit: AuditSource },
): void {
  const { context } = dependencies;
  const exports = createAuditExports(dependencies);
  server.route({
    method: 'GET',
    url: '/api/audit/export',
    schema: {
      operationId: 'exportAudit',
      tags: ['Organization'],
      summary: "The organization's records, chained and signed",
      description:
        'NDJSON: a signed head, then a line for each event between `from` and `to` by the clock ' +
        'of the event store, each with the hash of the line before. `bss audit verify FILE` ' +
        'proves the file unaltered, without the service; with `--against-log` it is compared ' +
        'with the event store. The records have no internal fields, unlike those of ' +
        '`bss audit export`. At most 100,000 events; one export of an organization at a time, ' +
        'and twelve of a process, two of which read at once.',
      querystring: AuditQuery,
      response: {
        200: response(
          'The head and the records, with gzip if the client accepts it',
          Type.String({
            examples: ['{"head":{"format":"bss-audit-1", …},"signature":"eyJ…..x4Q"}\n'],
          }),
          { contentType: 'application/x-ndjson' },
        ),
      },
    },
    config: {
      action: 'administer',
      refusals: ['STREAM_LIMIT_EXCEEDED'],
      cost: costs.exportAudit,
    },
    async handler(request, reply) {
      const { organizationId } = request.caller;
      const asked = readSpan(request.query);
      if (isRejection(asked)) return sendRejection(reply, asked);
      const isGzip = acceptsCoding(request.headers['accept-encoding'], 'gzip');
      const headers = {
        'content-type': 'application/x-ndjson',
        'content-disposition': `attachment; filename="audit-${organizationId}.ndjson"`,
        vary: 'accept-encoding',
        ...(isGzip && { 'content-encoding': 'gzip' }),
      };
      // A HEAD is answered like the GET, without a body.
      if (request.method === 'HEAD') return reply.headers(headers).send();
      const open = () => scopeOf(context, { ...asked, organization: organizationId });
      const body = await exports.open(open, organizationId, { isGzip, response: reply.raw });
      return 'code' in body ? sendRejection(reply, body) : reply.headers(headers).send(body);
    },
  });
}

/** The span in ms since the epoch. */
function readSpan(
  sent: Static<typeof AuditQuery>,
): { from: number | null; to: number | null } | Rejection {
  const [from, to] = [readMomentOrDate(sent.from), readMomentOrDate(sent.to)];
  return from !== null && to !== null && from > to
    ? reject('INVALID_REQUEST', { ...sent }, { message: 'from must not be after to.' })
    : { from, to };
}

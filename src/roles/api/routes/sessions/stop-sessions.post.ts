import { isRejection, reject } from '#src/kernel/errors.ts';
import { untilReadable } from '#src/commands/read-your-writes.ts';
import { stopSessions as stopEach } from '#src/commands/stop-sessions.ts';
import { isRestricting, NO_RESTRICTION } from '#src/kernel/domain/organization/organization.ts';
import { requestMetadata, type ApiDependencies } from '../../dependencies.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { readFilter, SessionsStopped, StopSessionsBody } from '../../schemas/stop-sessions.ts';
import { findOpenSessions } from '../../sessions/find-open-sessions.ts';

/** Sessions that one request stops. */
const STOPPED_MAX = 1_000;
/** Half of what clients wait: the rest is for stops that are under way. */
const BEGUN_WITHIN_MS = 30_000;

/** POST /api/sessions/stop: stops the open sessions that match a filter. */
export function stopSessions(server: ApiServer, dependencies: ApiDependencies): void {
  const { context, views } = dependencies;
  server.route({
    method: 'POST',
    url: '/api/sessions/stop',
    schema: {
      operationId: 'stopSessions',
      tags: ['Sessions'],
      summary: 'Stop the sessions that match a filter',
      description:
        'Stops the open sessions that match, at most 1,000, the newest first. `matched` tells ' +
        'how many there are, and a repeated request stops the next. An empty filter is refused. ' +
        'A session that leaves the status or labels of the filter meanwhile is left alone; one ' +
        'that ends meanwhile counts as stopped. The answer is 200 though some could not be ' +
        'stopped: `failed` names them, and a repeated request tries them again. `dry_run` ' +
        'changes nothing.',
      body: StopSessionsBody,
      response: { 200: response('What was stopped', SessionsStopped) },
    },
    config: { action: 'control', refusals: [], cost: costs.stopSessions },
    async handler(request, reply) {
      const { caller, body } = request;
      const { reason: note, dry_run = false } = body;
      const { organizationId } = caller;
      const filter = readFilter(body.filter);
      if (isRejection(filter)) return sendRejection(reply, filter);
      if (!isRestricting(filter))
        return sendRejection(reply, reject('INVALID_REQUEST', { field: 'filter' }, NO_RESTRICTION));
      const found = await findOpenSessions(dependencies, organizationId, filter);
      const ids = found.slice(0, STOPPED_MAX);
      const answer = { dry_run, matched: found.length, reason: note ?? null };
      if (dry_run || ids.length === 0) return reply.send({ ...answer, stopped: 0, sessions: ids });
      const metadata = requestMetadata(request, caller);
      const late = AbortSignal.timeout(BEGUN_WITHIN_MS);
      const done = await stopEach(context, { organizationId, filter, ids, note, metadata, late });
      if (isRejection(done)) return sendRejection(reply, done);
      const { stopped, failed, sequence } = done;
      await untilReadable(views, sequence);
      return reply.send({
        ...answer,
        stopped: stopped.length,
        sessions: stopped,
        ...(failed.length === 0 ? {} : { failed }),
      });
    },
  });
}

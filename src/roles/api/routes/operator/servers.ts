import { Type } from 'typebox';
import type { ServerState } from '#events/server.ts';
import type { WorkloadState } from '#events/workload.ts';
import { isId } from '#events/subjects.ts';
import { projectionId } from '#projections/projection.ts';
import { currentServers, servers } from '#projections/servers.ts';
import { readList } from '#projections/store/queries.ts';
import { allWorkloads, workloads } from '#projections/workloads.ts';
import { isRejection, reject } from '#src/kernel/errors.ts';
import { handleServerCommand, presentServer } from '#src/commands/operator/servers.ts';
import { operatorRequestMetadata, type ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { DrainedServer, OperatorServers } from '../../schemas/operator.ts';

const SERVERS_MAX = 1_000;
const BROWSERS_MAX = 20_000;

const ServerPath = Type.Object({ id: Type.String({ description: 'the server’s id' }) });

/** GET /api/operator/servers: the servers that have not left, with their browsers by state. */
export function operatorServers(
  server: ApiServer,
  dependencies: Pick<ApiDependencies, 'context' | 'views'>,
): void {
  server.route({
    method: 'GET',
    url: '/api/operator/servers',
    schema: {
      operationId: 'listServers',
      tags: ['Operator'],
      summary: 'The servers with their pools',
      response: { 200: response('All that have not left', OperatorServers) },
    },
    config: { action: 'operator', refusals: [] },
    async handler(_, reply) {
      const { views } = dependencies;
      const [current, browsers] = await Promise.all([
        readList<ServerState>(views, projectionId(servers), currentServers, SERVERS_MAX),
        readList<WorkloadState>(views, projectionId(workloads), allWorkloads, BROWSERS_MAX),
      ]);
      const on = Map.groupBy(browsers, ({ serverId }) => serverId);
      const shown = current.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      return reply.send({ servers: shown.map((one) => present(one, on.get(one.id) ?? [])) });
    },
  });
  drain(server, dependencies, 'drain');
  drain(server, dependencies, 'undrain');
}

function present(state: ServerState, browsers: readonly WorkloadState[]) {
  const count = (wanted: WorkloadState['status']) =>
    browsers.filter((one) => one.status === wanted).length;
  return {
    ...presentServer(state),
    idle: count('idle'),
    busy: count('busy'),
    provisioning: count('provisioning'),
    launching: count('launching'),
    terminating: count('terminating'),
  };
}

function drain(
  server: ApiServer,
  dependencies: Pick<ApiDependencies, 'context'>,
  verb: 'drain' | 'undrain',
): void {
  const isDrain = verb === 'drain';
  server.route({
    method: 'POST',
    url: `/api/operator/servers/:id/${verb}`,
    schema: {
      operationId: isDrain ? 'drainServer' : 'undrainServer',
      tags: ['Operator'],
      summary: isDrain ? 'Take no new sessions on a server' : 'Take sessions on a server again',
      params: ServerPath,
      response: { 200: response('The server’s status', DrainedServer) },
    },
    config: { action: 'operator', refusals: ['NOT_FOUND'] },
    async handler(request, reply) {
      const { id } = request.params;
      if (!isId(id)) return sendRejection(reply, reject('NOT_FOUND', { server_id: id }));
      const state = await handleServerCommand(
        dependencies.context,
        id,
        { type: isDrain ? 'Drain' : 'Undrain' },
        operatorRequestMetadata(request),
      );
      if (isRejection(state)) return sendRejection(reply, state);
      return reply.send({ id, status: state.status });
    },
  });
}

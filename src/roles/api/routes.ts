import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { ApiDependencies } from './dependencies.ts';
import type { Dialect } from './http/dialect.ts';
import type { ApiServer } from './http/route.ts';
import { allowOrigins } from './routes/organization/allow-origins.put.ts';
import { getOrganization } from './routes/organization/get-organization.get.ts';
import { issueKey } from './routes/organization/issue-key.post.ts';
import { listKeys } from './routes/organization/list-keys.get.ts';
import { revokeKey } from './routes/organization/revoke-key.delete.ts';
import { streamEvents } from './routes/organization/stream-events.get.ts';
import { organizationUsage } from './routes/organization/usage.get.ts';
import { organizationPool, organizationQueue } from './routes/organization/pool-and-queue.get.ts';
import { operatorAudits } from './routes/operator/audits.ts';
import { operatorDeadLetters } from './routes/operator/dead-letters.ts';
import { operatorEvents } from './routes/operator/events.ts';
import { getOperator } from './routes/operator/get-operator.get.ts';
import { listOrganizations } from './routes/operator/list-organizations.get.ts';
import { operatorPool } from './routes/operator/pool.ts';
import { operatorQueue } from './routes/operator/queue.get.ts';
import { operatorReadModels } from './routes/operator/read-models.ts';
import { operatorServers } from './routes/operator/servers.ts';
import { serveDashboard } from './routes/service/dashboard.get.ts';
import { serveDocuments } from './routes/service/documents.get.ts';
import { serviceHealth } from './routes/service/health.get.ts';
import { serviceMetrics } from './routes/service/metrics.get.ts';
import { serviceReady } from './routes/service/ready.get.ts';
import { serviceStatus } from './routes/service/status.get.ts';
import { createSession } from './routes/sessions/create-session.post.ts';
import { extendSession } from './routes/sessions/extend-session.post.ts';
import { getSession } from './routes/sessions/get-session.get.ts';
import { listSessions } from './routes/sessions/list-sessions.get.ts';
import { rotateAccess } from './routes/sessions/rotate-access.post.ts';
import { sessionAccess } from './routes/sessions/session-access.get.ts';
import { sessionHistory } from './routes/sessions/session-history.get.ts';
import { sessionWhy } from './routes/sessions/session-why.get.ts';
import { sessionScreenshot } from './routes/sessions/session-screenshot.get.ts';
import { stopSession } from './routes/sessions/stop-session.delete.ts';
import { stopSessions } from './routes/sessions/stop-sessions.post.ts';
import { streamSessionEvents } from './routes/sessions/stream-session-events.get.ts';
import { updateSession } from './routes/sessions/update-session.patch.ts';
import { createPoolSeries } from './operator/pool-query.ts';
import { createWaitingPlaces } from './sessions/waiting-places.ts';
import { createHistoryReader } from './time-travel/history-reader.ts';

/** What an optional part of the service adds to the API. */
export type ApiAddition = {
  routes(server: ApiServer, dependencies: ApiDependencies): void;
  dialect?: Dialect;
};

/** Registers every operation of the API. @param added each on a scope of its own */
export function registerRoutes(
  server: ApiServer,
  dependencies: ApiDependencies,
  added: readonly ApiAddition[],
): void {
  const past = createHistoryReader(dependencies);
  const series = createPoolSeries(past, () => dependencies.context.now());
  const waitingPlaces = createWaitingPlaces(dependencies, past);
  createSession(server, dependencies);
  listSessions(server, dependencies, past);
  getSession(server, dependencies, past);
  sessionAccess(server, dependencies);
  rotateAccess(server, dependencies);
  extendSession(server, dependencies);
  updateSession(server, dependencies);
  stopSession(server, dependencies);
  sessionHistory(server, dependencies);
  sessionWhy(server, dependencies);
  stopSessions(server, dependencies);
  sessionScreenshot(server, dependencies);
  streamSessionEvents(server, dependencies);
  streamEvents(server, dependencies);
  getOrganization(server, dependencies);
  allowOrigins(server, dependencies);
  listKeys(server, dependencies);
  issueKey(server, dependencies);
  revokeKey(server, dependencies);
  organizationUsage(server, dependencies);
  organizationPool(server, series);
  organizationQueue(server, waitingPlaces);
  getOperator(server);
  listOrganizations(server, dependencies);
  operatorServers(server, dependencies);
  operatorPool(server, dependencies, series);
  operatorEvents(server, dependencies);
  operatorQueue(server, waitingPlaces);
  operatorReadModels(server, dependencies);
  operatorDeadLetters(server, dependencies);
  operatorAudits(server, dependencies);
  serviceStatus(server, dependencies, past);
  serviceHealth(server, dependencies);
  serviceReady(server, dependencies);
  serviceMetrics(server, dependencies);
  serveDocuments(server);
  serveDashboard(server, dependencies.dashboard);
  for (const addition of added)
    server.register(async (scope) =>
      addition.routes(scope.withTypeProvider<TypeBoxTypeProvider>(), dependencies),
    );
}

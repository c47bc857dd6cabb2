import type { ApiDependencies } from './dependencies.ts';
import type { ApiServer } from './http/route.ts';
import { getOrganization } from './routes/organization/get-organization.get.ts';
import { issueKey } from './routes/organization/issue-key.post.ts';
import { listKeys } from './routes/organization/list-keys.get.ts';
import { revokeKey } from './routes/organization/revoke-key.delete.ts';
import { streamEvents } from './routes/organization/stream-events.get.ts';
import { organizationUsage } from './routes/organization/usage.get.ts';
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
import { stopSession } from './routes/sessions/stop-session.delete.ts';
import { streamSessionEvents } from './routes/sessions/stream-session-events.get.ts';
import { createHistoryReader } from './time-travel/history-reader.ts';

/** Registers every operation of the API, in the order of the documentation. */
export function registerRoutes(server: ApiServer, dependencies: ApiDependencies): void {
  const past = createHistoryReader(dependencies);
  createSession(server, dependencies);
  listSessions(server, dependencies, past);
  getSession(server, dependencies, past);
  sessionAccess(server, dependencies);
  rotateAccess(server, dependencies);
  extendSession(server, dependencies);
  stopSession(server, dependencies);
  streamSessionEvents(server, dependencies);
  streamEvents(server, dependencies);
  getOrganization(server, dependencies);
  listKeys(server, dependencies);
  issueKey(server, dependencies);
  revokeKey(server, dependencies);
  organizationUsage(server, dependencies);
  serviceStatus(server, dependencies, past);
  serviceHealth(server, dependencies);
  serviceReady(server, dependencies);
  serviceMetrics(server, dependencies);
  serveDocuments(server);
}

import { asyncApi } from './routes/service/documents.get.ts';
import { createSession } from './routes/sessions/create-session.post.ts';
import { docsEvents } from './docs-events.get.ts';
import { docs } from './docs.get.ts';
import { extendSession } from './routes/sessions/extend-session.post.ts';
import { getOrganization } from './routes/organization/get-organization.get.ts';
import { getSession } from './routes/sessions/get-session.get.ts';
import { serviceHealth } from './routes/service/health.get.ts';
import { issueKey } from './routes/organization/issue-key.post.ts';
import { listKeys } from './routes/organization/list-keys.get.ts';
import { listSessions } from './routes/sessions/list-sessions.get.ts';
import { serviceMetrics } from './routes/service/metrics.get.ts';
import { openApi } from './openapi.get.ts';
import type { ApiParts } from './dependencies.ts';
import { openPast } from './time-travel/past.ts';
import { serviceReady } from './routes/service/ready.get.ts';
import { revokeKey } from './routes/organization/revoke-key.delete.ts';
import type { Route } from './http/route.ts';
import { sessionAccess } from './routes/sessions/session-access.get.ts';
import { serviceStatus } from './routes/service/status.get.ts';
import { stopSession } from './routes/sessions/stop-session.delete.ts';
import { organizationUsage } from './routes/organization/usage.get.ts';
import { streamEvents } from './routes/organization/stream-events.get.ts';
import { streamSessionEvents } from './routes/sessions/stream-session-events.get.ts';

/** Every operation of the API, in the order of the documentation. */
export function apiRoutes(parts: ApiParts): Route[] {
  const past = openPast(parts);
  const routes: Route[] = [
    createSession(parts),
    listSessions(parts, past),
    getSession(parts, past),
    sessionAccess(parts),
    extendSession(parts),
    stopSession(parts),
    streamSessionEvents(parts),
    streamEvents(parts),
    getOrganization(parts),
    listKeys(parts),
    issueKey(parts),
    revokeKey(parts),
    organizationUsage(parts),
    serviceStatus(parts, past),
    serviceHealth(parts),
    serviceReady(parts),
    serviceMetrics(parts),
    openApi(() => routes),
    asyncApi(),
    docs(() => routes),
    docsEvents(),
  ];
  return routes;
}

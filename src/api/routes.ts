import { asyncApi } from './asyncapi.get.ts';
import { createSession } from './create-session.post.ts';
import { docsEvents } from './docs-events.get.ts';
import { docs } from './docs.get.ts';
import { extendSession } from './extend-session.post.ts';
import { getOrganization } from './get-organization.get.ts';
import { getSession } from './get-session.get.ts';
import { serviceHealth } from './health.get.ts';
import { issueKey } from './issue-key.post.ts';
import { listKeys } from './list-keys.get.ts';
import { listSessions } from './list-sessions.get.ts';
import { serviceMetrics } from './metrics.get.ts';
import { openApi } from './openapi.get.ts';
import type { ApiParts } from './parts.ts';
import { openPast } from './past.ts';
import { serviceReady } from './ready.get.ts';
import { revokeKey } from './revoke-key.delete.ts';
import type { Route } from './route.ts';
import { sessionAccess } from './session-access.get.ts';
import { serviceStatus } from './status.get.ts';
import { stopSession } from './stop-session.delete.ts';
import { organizationUsage } from './usage.get.ts';
import { streamEvents } from './stream-events.get.ts';
import { streamSessionEvents } from './stream-session-events.get.ts';

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

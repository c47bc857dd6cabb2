import type { EventWithState } from '#events/events.ts';
import {
  nextOrganization,
  noShares,
  serve,
  WEIGHT_MIN,
} from '#src/kernel/domain/fleet/fair-queue.ts';
import { isAwaitingServer } from '#src/kernel/domain/session/session.ts';

type Request = EventWithState<'session'>;
/** A request, and when this process learned of it. */
type Known = { request: Request; since: number };

/**
 * The sessions of all organizations that wait for a server, as this process knows them from the
 * session events, and whose turn it is. An outdated or incomplete answer costs a
 * claim that is lost, and loses no session: each has an item of its own in the work queue.
 */
export type WaitingSessions = {
  observe(event: Request): void;
  /**
   * Adds the requests that waited at the position where the observed events began, without those
   * that have been served or have ended since. To be called once.
   */
  addEarlier(requests: Iterable<Request>): void;
  /** Number of sessions that are known to wait; without those that this server has claimed. */
  count(): number;
  /**
   * What is known of the session: it waits, or its events have not arrived yet (`waits`); this
   * server has claimed it (`claimed`); or it has to be read (`unknown`).
   */
  statusOf(request: Request): 'waits' | 'claimed' | 'unknown';
  /**
   * The session's newest request, which is the given one or that of a later requeue, and for how
   * many milliseconds this process has known it: 0 if its event has not arrived yet; null: the
   * session is not known to wait.
   */
  newestOf(request: Request): { request: Request; knownMs: number } | null;
  /**
   * The oldest request of the organization whose turn it is, if that is not the one of the given
   * request; null: the given request may be served. Requests that the server has failed to launch
   * for are left to other servers.
   */
  turnBefore(request: Request, serverId: string): Request | null;
  /** Notes that this server is about to accept the session. */
  claim(request: Request): void;
  /** Notes that it has not accepted it: another server has, or the session has ended. */
  lose(request: Request): void;
};

/**
 * Sessions that are kept, some kilobytes each. Any further one is served by its own item alone, in
 * the order of the work queue.
 */
const SESSIONS_MAX = 5_000;
/** Sessions that may end before the earlier requests are known; then these are left out. */
const SETTLED_MAX = 100_000;

/**
 * @param position sequence of the last session event before the first that is observed
 * @param now a clock of this process, in milliseconds
 */
export function createWaitingSessions(
  position: number,
  now: () => number = () => performance.now(),
): WaitingSessions {
  const requests = createRequests(now);
  /** Ids of sessions; the event of the claim, or `lose`, removes them. */
  const claimed = new Set<string>();
  /** Sessions that no longer wait; null once the earlier requests have been added. */
  let settled: Set<string> | null = new Set<string>();
  let observedUpTo = position;
  let shares = noShares;

  function countService({ aggregate, state }: Request): void {
    const weight = state.queueWeight ?? WEIGHT_MIN;
    shares = serve(shares, aggregate.organizationId, weight, requests.organizations());
  }
  function observe(event: Request): void {
    const { id } = event.aggregate;
    observedUpTo = Math.max(observedUpTo, event.sequence);
    if (isAwaitingServer(event.state)) {
      if (event.type === 'session.requeued') claimed.delete(id);
      const isRequest = event.type === 'session.requested' || event.type === 'session.requeued';
      if (isRequest && !claimed.has(id)) requests.add(event);
      return;
    }
    claimed.delete(id);
    if (settled !== null && settled.add(id).size > SETTLED_MAX) settled = null;
    const isServed = event.type === 'session.assigned' || event.type === 'session.activated';
    if (requests.remove(event) && isServed) countService(event);
  }
  function addEarlier(earlier: Iterable<Request>): void {
    const known = settled;
    settled = null;
    if (known === null) return;
    for (const request of earlier) {
      const { id } = request.aggregate;
      if (!known.has(id) && !claimed.has(id) && !requests.has(request)) requests.add(request);
    }
  }
  function turnBefore({ aggregate }: Request, serverId: string): Request | null {
    const oldest = new Map<string, Request | null>();
    for (const organizationId of requests.organizations()) {
      const request = requests.oldestOf(organizationId, serverId);
      if (request !== null) oldest.set(organizationId, request);
    }
    oldest.set(aggregate.organizationId, null);
    return oldest.get(nextOrganization(shares, oldest.keys()) ?? '') ?? null;
  }
  return {
    observe,
    addEarlier,
    count: requests.count,
    statusOf(request) {
      if (claimed.has(request.aggregate.id)) return 'claimed';
      return requests.has(request) || request.sequence > observedUpTo ? 'waits' : 'unknown';
    },
    newestOf(request) {
      const known = requests.get(request);
      if (known !== null && known.request.sequence >= request.sequence)
        return { request: known.request, knownMs: now() - known.since };
      return request.sequence > observedUpTo ? { request, knownMs: 0 } : null;
    },
    turnBefore,
    claim(request) {
      requests.remove(request);
      claimed.add(request.aggregate.id);
      countService(request);
    },
    lose: ({ aggregate: { id } }) => void claimed.delete(id),
  };
}

/** Requests by organization, in the order of their arrival. */
function createRequests(now: () => number) {
  const byOrganization = new Map<string, Map<string, Known>>();
  let size = 0;

  function add(request: Request): void {
    if (size >= SESSIONS_MAX) return;
    const { organizationId, id } = request.aggregate;
    const sessions = byOrganization.get(organizationId) ?? new Map<string, Known>();
    if (!sessions.has(id)) size += 1;
    byOrganization.set(organizationId, sessions.set(id, { request, since: now() }));
  }
  function remove({ aggregate: { organizationId, id } }: Request): boolean {
    const sessions = byOrganization.get(organizationId);
    if (sessions?.delete(id) !== true) return false;
    size -= 1;
    if (sessions.size === 0) byOrganization.delete(organizationId);
    return true;
  }
  /** The oldest request that the server has not failed to launch for. */
  function oldestOf(organizationId: string, serverId: string): Request | null {
    let oldest: Request | null = null;
    for (const { request } of byOrganization.get(organizationId)?.values() ?? []) {
      const { createdAt, triedServers } = request.state;
      if (triedServers?.includes(serverId) === true) continue;
      if (oldest === null || createdAt < oldest.state.createdAt) oldest = request;
    }
    return oldest;
  }
  const get = ({ aggregate: { organizationId, id } }: Request): Known | null =>
    byOrganization.get(organizationId)?.get(id) ?? null;
  return {
    add,
    remove,
    oldestOf,
    get,
    count: () => size,
    has: (request: Request) => get(request) !== null,
    organizations: () => byOrganization.keys(),
  };
}

import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { reject, type Rejected } from '#src/errors.ts';
import { mayDo } from '#src/domain/organization/roles.ts';
import type { TierLimits } from '#src/domain/organization/tiers.ts';
import { bearerOf, type Authenticate, type Caller } from '../auth/authenticate.ts';
import { refuse } from './error-response.ts';
import {
  createLocalLimiter,
  WINDOW_MS,
  type Allowance,
  type RateLimiter,
} from '../auth/rate-limit.ts';
import type { Route } from './route.ts';

/** What is known of a request before its handler runs. */
type Visit = {
  caller: Caller | null;
  /** By performance.now(). */
  arrivedAt: number;
  allowance: Promise<Allowance> | Allowance;
  begun?: Promise<unknown>;
};

/** Counts a request of nobody's by its address, in this process. */
export type CountByAddress = (address: string) => Allowance;

export type Gatekeeper = {
  authenticate: Authenticate;
  rateLimiter: RateLimiter;
  /** The limits of callers who are nobody's. */
  anonymous: TierLimits;
  now: () => number;
};

/** A request with what is known of it; set by the route's own hook, else when it is answered. */
type Visited = FastifyRequest & { visit: Visit | null };

export type Admission = {
  /** The route's first hook: who asks, and whether they may. */
  hookFor(route: Route): onRequestHookHandler;
  /** For a path that is not there: counts the request, and refuses it by the limit alone. */
  count(request: FastifyRequest): Promise<Rejected | null>;
};

/**
 * Every request is counted, whoever sends it, and every answer carries what is left: an
 * organization's requests together, over all processes; unauthenticated ones by address, in this
 * process. The hooks call back rather than promise: they run for every request there is.
 */
export function registerAdmission(
  server: FastifyInstance,
  gatekeeper: Gatekeeper,
  countByAddress: CountByAddress,
): Admission {
  server.decorateRequest('visit', null);

  server.addHook('onSend', (request, reply, payload, done) => {
    const allowance = visitOf(request)?.allowance ?? countByAddress(request.ip);
    const finish = (known: Allowance) => {
      void reply.headers(allowanceHeaders(known));
      done(null, payload);
    };
    if (allowance instanceof Promise) void allowance.then(finish, done);
    else finish(allowance);
  });

  function enter(request: FastifyRequest, caller: Caller | null): Visit {
    const arrivedAt = performance.now();
    const visit: Visit = { caller, arrivedAt, allowance: countOf(request, caller) };
    (request as Visited).visit = visit;
    return visit;
  }
  function countOf(request: FastifyRequest, caller: Caller | null) {
    if (caller === null) return countByAddress(request.ip);
    return gatekeeper.rateLimiter.take(caller.organizationId, caller.limits.requestsPerMinute);
  }

  function hookFor(route: Route): onRequestHookHandler {
    return function onRequest(request, reply, done) {
      if (route.action === 'public') {
        enter(request, null);
        return done();
      }
      const admitted = (caller: Caller | null) => {
        const visit = enter(request, caller);
        if (caller !== null && route.begin !== undefined) begin(visit, route.begin);
        if (caller !== null && route.admitsItself === true) return next(roleRefusal(caller, route));
        void admit(visit, route, gatekeeper.now).then(next, done);
      };
      const next = (refusal: Rejected | null) => {
        if (refusal === null) done();
        else refuse(reply, refusal);
      };
      const caller = callerOf(request, gatekeeper.authenticate);
      if (caller instanceof Promise) void caller.then(admitted, done);
      else admitted(caller);
    };
  }
  async function count(request: FastifyRequest): Promise<Rejected | null> {
    enter(request, await callerOf(request, gatekeeper.authenticate));
    return admission(request, gatekeeper.now());
  }
  return { hookFor, count };
}

export function createCountByAddress({ now, anonymous }: Gatekeeper): CountByAddress {
  const take = createLocalLimiter(now);
  return (address) => take(address, anonymous.requestsPerMinute);
}

/** The headers of every answer: what is left, and that nobody else may keep it. */
export function allowanceHeaders({ limit, remaining, resetAtSeconds }: Allowance) {
  return {
    'cache-control': 'no-store',
    'x-ratelimit-limit': limit,
    'x-ratelimit-remaining': remaining,
    'x-ratelimit-reset': resetAtSeconds,
  };
}

/** The same for an answer that goes past the server's hooks; the request has been admitted. */
export function answerHeaders(request: FastifyRequest) {
  const allowance = visitOf(request)?.allowance;
  if (allowance === undefined || allowance instanceof Promise)
    throw new Error('a request was not admitted');
  return allowanceHeaders(allowance);
}

/** Waits for the request's count; a refusal where the window is used up, else null. */
export async function admission(request: FastifyRequest, now: number): Promise<Rejected | null> {
  const visit = visitOf(request);
  if (visit === null) throw new Error('a request was not counted');
  visit.allowance = await visit.allowance;
  return overLimit(visit.allowance, now);
}

/** When the request was let in to be counted, by performance.now(). */
export function arrivedAt(request: FastifyRequest): number {
  return visitOf(request)?.arrivedAt ?? performance.now();
}

/** What the route has begun beside the request's count. */
export function begunOf(request: FastifyRequest): Promise<unknown> {
  const begun = visitOf(request)?.begun;
  if (begun === undefined) throw new Error('this route begins nothing beforehand');
  return begun;
}

function begin(visit: Visit, work: () => Promise<unknown>): void {
  visit.begun = work();
  // Whoever takes it learns of its failure; a request that is refused before does not.
  visit.begun.catch(() => undefined);
}

/** The caller of a route that is not public. */
export function authenticated(request: FastifyRequest): Caller {
  const caller = visitOf(request)?.caller ?? null;
  if (caller === null) throw new Error('a route that is not public has no caller');
  return caller;
}

function visitOf(request: FastifyRequest): Visit | null {
  return (request as Visited).visit;
}

function callerOf(request: FastifyRequest, authenticate: Authenticate) {
  const credential = bearerOf(request.headers.authorization);
  return credential === null ? null : authenticate(credential);
}

async function admit(visit: Visit, route: Route, now: () => number): Promise<Rejected | null> {
  visit.allowance = await visit.allowance;
  const refusal = overLimit(visit.allowance, now());
  if (refusal !== null) return refusal;
  return visit.caller === null ? reject('UNAUTHORIZED') : roleRefusal(visit.caller, route);
}

function roleRefusal(caller: Caller, { action }: Route): Rejected | null {
  return action === 'public' || mayDo(caller.role, action)
    ? null
    : reject('FORBIDDEN', { role: caller.role, action });
}

function overLimit(allowance: Allowance, now: number): Rejected | null {
  if (allowance.isAllowed) return null;
  const leftSeconds = allowance.resetAtSeconds - Math.floor(now / 1000);
  // The window may be of another machine's clock.
  const retryAfterSeconds = Math.min(WINDOW_MS / 1000, Math.max(1, leftSeconds));
  return reject('RATE_LIMIT_EXCEEDED', { limit: allowance.limit }, { retryAfterSeconds });
}

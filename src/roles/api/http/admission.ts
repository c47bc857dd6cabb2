import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { mayDo, type Action } from '#src/kernel/domain/organization/roles.ts';
import type { TierLimits } from '#src/kernel/domain/organization/tiers.ts';
import { bearerOf, passwordOf, type Authenticate, type Caller } from '../auth/authenticate.ts';
import { unitsOf, type Asked, type Cost } from './cost.ts';
import { dialectOf } from './dialect.ts';
import { sendRejection } from './error-response.ts';
import type { RouteConfig } from './route.ts';
import {
  createLocalLimiter,
  rateLimitHeaders,
  secondsToReset,
  type Allowance,
} from '#src/kernel/http/rate-window.ts';
import { networkOf } from '#src/kernel/http/address.ts';
import { isSameSecret } from '#src/kernel/http/same-secret.ts';
import type { RateLimiter } from '../auth/rate-limit.ts';

/** What is known of a request before its handler runs. */
type Admission = {
  caller: Caller | null;
  /** By performance.now(). */
  arrivedAt: number;
  /** Units of the rate limit that the request needs. */
  cost: number;
  allowance: Promise<Allowance> | Allowance;
  /** The reason for a refusal; null: admitted. Never rejects. */
  result: Promise<Rejection | null>;
};

declare module 'fastify' {
  // oxlint-disable-next-line typescript/consistent-type-definitions
  interface FastifyRequest {
    /** Set by the first hook; null for requests that are refused before it. */
    admission: Admission | null;
    /** The authenticated caller. Throws on a public route, which needs no credential. */
    readonly caller: Caller;
    /**
     * Resolves once the rate limiter has counted the request: with a rejection, or null where the
     * request is admitted. A route of `admission: 'handler'` has to await it before it answers.
     */
    readonly admitted: Promise<Rejection | null>;
    /**
     * Counts a unit of the caller's limit for a request that is bounded elsewhere unless it is
     * refused here; the rejection is the limit's.
     */
    readonly chargeRefusal: () => Promise<Rejection | null>;
  }
}

/**
 * Takes units (default 1) of the limit of an IP address in this process, of IPv6 of its /64; with 0
 * it only tells what is left.
 */
export type CountByAddress = (address: string, units?: number) => Allowance;

export type Gatekeeper = {
  authenticate: Authenticate;
  rateLimiter: RateLimiter;
  /** The limits of unauthenticated requests. */
  anonymous: TierLimits;
  /** The credential of /api/operator; null: there is no such path. */
  operatorToken: string | null;
  /** The port of /api/operator; left out or null: every one. */
  operatorPort?: number | null;
  now: () => number;
  /** Called for each request with a valid credential, which is its organization's or OPERATOR. */
  onAuthenticated?: (request: FastifyRequest, owner: string) => void;
};

/**
 * Authenticates and counts every request, and refuses those that are not permitted. An
 * organization's requests are counted together over all processes, unauthenticated ones by address
 * in this process; every answer carries the remaining allowance. The hooks take callbacks instead
 * of promises, as they run for every request.
 * @returns counts a request to an unknown path; its rejection is the rate limit's alone
 */
export function registerAdmission(
  server: FastifyInstance,
  gatekeeper: Gatekeeper,
  countByAddress: CountByAddress,
): (request: FastifyRequest) => Promise<Rejection | null> {
  const { authenticate, rateLimiter, now } = gatekeeper;
  server.decorateRequest('admission', null);
  server.decorateRequest('caller', { getter: callerOf });
  decorateCharge(server, gatekeeper);
  tellAllowances(server, countByAddress);

  function enter(
    request: FastifyRequest,
    caller: Caller | null,
    config: Partial<RouteConfig>,
    action: Action | null,
  ): Admission {
    const { requestsPerMinute: limit } = caller?.limits ?? gatekeeper.anonymous;
    const cost = isFree(config, caller) ? 0 : unpaidUnits(request, config.cost, limit);
    const allowance =
      caller === null
        ? countByAddress(request.ip, cost)
        : rateLimiter.take(caller.organizationId, limit, cost);
    const admission: Admission = {
      caller,
      arrivedAt: performance.now(),
      cost,
      allowance,
      result: ADMITTED,
    };
    request.admission = admission;
    if (caller !== null) gatekeeper.onAuthenticated?.(request, caller.organizationId);
    if (action !== null) admission.result = resultOf(admission, action, now);
    return admission;
  }

  const failures = createLocalLimiter(now);
  // A hook of each route instead of one for all: what the route declares is read once, not for
  // every request. Unknown paths have no such hook.
  server.addHook('onRoute', (route) => {
    const config = route.config ?? {};
    if (config.action === 'operator') route.onRequest = admitOperator(gatekeeper, failures);
    else route.onRequest = config.action === 'public' ? admitAnyone(config) : admitCallers(config);
  });
  function admitAnyone(config: Partial<RouteConfig>): onRequestHookHandler {
    return (request, reply, done) => {
      const admission = enter(request, null, config, null);
      const refusal = overLimit(admission.allowance as Allowance, admission.cost, now());
      return refusal === null ? done() : void sendRejection(reply, refusal);
    };
  }
  function admitCallers(config: Partial<RouteConfig>): onRequestHookHandler {
    const { admission: place } = config;
    const action = config.action as Action;
    return (request, reply, done) => {
      const count = (caller: Caller | null) => {
        const { result } = enter(request, caller, config, action);
        const goesOn = place === 'handler' && caller !== null && mayDo(caller.role, action);
        if (goesOn) return done();
        void result.then(
          (rejection) => (rejection === null ? done() : sendRejection(reply, rejection)),
          done,
        );
      };
      const caller = authenticated(request, authenticate);
      if (caller instanceof Promise) void caller.then(count, done);
      else count(caller);
    };
  }

  return async (request) => {
    const admission = enter(request, await authenticated(request, authenticate), {}, null);
    return overLimit(await admission.allowance, admission.cost, now());
  };
}

/** See `admitted` and `chargeRefusal` of a request. */
function decorateCharge(server: FastifyInstance, { rateLimiter, now }: Gatekeeper): void {
  server.decorateRequest('admitted', { getter: admittedOf });
  server.decorateRequest('chargeRefusal', {
    getter(this: FastifyRequest) {
      const { organizationId, limits } = this.caller;
      return async () => {
        const allowance = await rateLimiter.take(organizationId, limits.requestsPerMinute, 1);
        return overLimit(allowance, 1, now());
      };
    },
  });
}

/**
 * Admits who sends OPERATOR_TOKEN, whatever else came from the address: behind a proxy that is not
 * trusted all callers share one. Failed attempts are counted by address, apart from other requests.
 */
function admitOperator(
  gatekeeper: Gatekeeper,
  failures: ReturnType<typeof createLocalLimiter>,
): onRequestHookHandler {
  const { operatorToken, operatorPort = null, now, anonymous } = gatekeeper;
  return (request, reply, done) => {
    const isHere = operatorPort === null || request.socket.localPort === operatorPort;
    const token = isHere ? operatorToken : null;
    const arrived = performance.now();
    const network = networkOf(request.ip);
    const { requestsPerMinute: limit } = anonymous;
    const given = bearerOf(request.headers.authorization) ?? '';
    const isRight = token !== null && isSameSecret(given, token);
    const allowance = failures(network, limit, isRight ? 0 : 1);
    request.admission = { caller: null, arrivedAt: arrived, cost: 1, allowance, result: ADMITTED };
    if (isRight) {
      gatekeeper.onAuthenticated?.(request, OPERATOR);
      return done();
    }
    const refused = token === null ? noSuchPath(request) : reject('UNAUTHORIZED');
    sendRejection(reply, overLimit(allowance, 1, now()) ?? refused);
  };
}

function noSuchPath({ url }: FastifyRequest): Rejection {
  return reject('NOT_FOUND', { path: url });
}

const ADMITTED = Promise.resolve(null);

/** The owner of OPERATOR_TOKEN; no organization has this id. */
const OPERATOR = ' operator';

/** Whether the rate limit counts nothing. */
function isFree(
  { isUnlimited, isBoundedElsewhere }: Partial<RouteConfig>,
  caller: Caller | null,
): boolean {
  return isUnlimited === true || (isBoundedElsewhere === true && caller !== null);
}

/** The rate limit comes first, then the credential, then the role. */
async function resultOf(
  admission: Admission,
  action: Action,
  now: () => number,
): Promise<Rejection | null> {
  admission.allowance = await admission.allowance;
  const refusal = overLimit(admission.allowance, admission.cost, now());
  if (refusal !== null) return refusal;
  const { caller } = admission;
  if (caller === null) return reject('UNAUTHORIZED');
  return mayDo(caller.role, action) ? null : reject('FORBIDDEN', { role: caller.role, action });
}

export function createCountByAddress({ now, anonymous }: Gatekeeper): CountByAddress {
  const take = createLocalLimiter(now);
  return (address, units = 1) => take(networkOf(address), anonymous.requestsPerMinute, units);
}

const NO_CACHE = 'no-store';

/** Each answer tells what is left of the budget that its request was counted in. */
function tellAllowances(server: FastifyInstance, countByAddress: CountByAddress): void {
  server.addHook('onSend', (request, reply, payload, done) => {
    const allowance = request.admission?.allowance ?? countByAddress(request.ip);
    const finish = (known: Allowance) => {
      void reply.headers(rateLimitHeaders(known));
      // A document says itself how it may be kept.
      if (!reply.hasHeader('cache-control')) void reply.header('cache-control', noCache(request));
      done(null, payload);
    };
    if (allowance instanceof Promise) void allowance.then(finish, done);
    else finish(allowance);
  });
}

/** The headers of every answer: the remaining allowance, and that no cache may store it. */
export function allowanceHeaders(allowance: Allowance, request?: FastifyRequest) {
  return { 'cache-control': noCache(request), ...rateLimitHeaders(allowance) };
}

function noCache(request?: FastifyRequest): string {
  const dialect = request === undefined ? null : dialectOf(request);
  return dialect?.cacheControl ?? NO_CACHE;
}

/** The same for an answer that bypasses the server's hooks; the request has been admitted. */
export function answerHeaders({ admission }: FastifyRequest) {
  const allowance = admission?.allowance;
  if (allowance === undefined || allowance instanceof Promise)
    throw new Error('a request was not admitted');
  return allowanceHeaders(allowance);
}

/** When the request's credential had been checked, by performance.now(). */
export function arrivedAt({ admission }: FastifyRequest): number {
  return admission?.arrivedAt ?? performance.now();
}

function callerOf(this: FastifyRequest): Caller {
  const caller = this.admission?.caller ?? null;
  if (caller === null) throw new Error('a public route has no caller');
  return caller;
}

function admittedOf(this: FastifyRequest): Promise<Rejection | null> {
  return this.admission?.result ?? ADMITTED;
}

function authenticated(request: FastifyRequest, authenticate: Authenticate) {
  const { authorization } = request.headers;
  const takesPasswords = dialectOf(request)?.takesPasswords ?? false;
  const credential = bearerOf(authorization) ?? (takesPasswords ? passwordOf(authorization) : null);
  return credential === null ? null : authenticate(credential);
}

/** What the request costs, without what was taken before it came through its door. */
function unpaidUnits(request: FastifyRequest, cost: Cost | undefined, limit: number): number {
  const units = unitsOf(cost, request as Asked, limit);
  return Math.max(0, units - (request.door?.paid ?? 0));
}

/** Not for an allowance that nothing was asked of, which is always sufficient. */
function overLimit(allowance: Allowance, cost: number, now: number): Rejection | null {
  if (allowance.isAllowed || cost === 0) return null;
  const retryAfterSeconds = secondsToReset(allowance, now);
  return reject('RATE_LIMIT_EXCEEDED', { limit: allowance.limit, cost }, { retryAfterSeconds });
}

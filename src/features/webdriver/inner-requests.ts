import type { FastifyInstance, FastifyRequest } from 'fastify';
import { bearerOf, passwordOf } from '#src/roles/api/auth/authenticate.ts';
import { COST_MAX } from '#src/roles/api/http/cost.ts';
import { throughDoor } from '#src/roles/api/http/door.ts';

/** The answer of a route of the REST API. */
export type InnerAnswer = {
  status: number;
  body: Record<string, unknown>;
  retryAfter: string | undefined;
};

/**
 * Calls a route of the REST API on behalf of a client of WebDriver, with its credential. None
 * counts for the rate limit: New Session has paid for its create, and looks and stops that are
 * refused would leave a session behind.
 */
export type InnerRequests = (
  method: 'GET' | 'POST' | 'DELETE',
  url: string,
  body?: object,
) => Promise<InnerAnswer>;

/** A create answers by then: only after it New Session sees that its client has left. */
const CREATE_WAIT_MS = 15_000;

/**
 * Sessions of WebDriver are created, read and stopped by the routes of all sessions: the same
 * schemas, limits and events.
 */
export function innerRequests(server: FastifyInstance, request: FastifyRequest): InnerRequests {
  const { authorization, traceparent, 'user-agent': client } = request.headers;
  const credential = bearerOf(authorization) ?? passwordOf(authorization) ?? '';
  const headers = {
    authorization: `Bearer ${credential}`,
    ...(typeof traceparent === 'string' ? { traceparent } : {}),
  };
  const named = { via: 'webdriver', ...(client === undefined ? {} : { client }) } as const;
  return async (method, url, body) => {
    const wait = method === 'POST' ? { createWaitMs: CREATE_WAIT_MS } : {};
    const door = { ...named, ...wait, paid: COST_MAX };
    const payload = body === undefined ? {} : { payload: body };
    const sent = { method, url, headers, remoteAddress: request.ip, ...payload };
    const answer = await throughDoor(door, () => server.inject(sent));
    const retryAfter = answer.headers['retry-after'];
    return {
      status: answer.statusCode,
      body: answer.json(),
      retryAfter,
    };
  };
}

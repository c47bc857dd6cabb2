import { AsyncLocalStorage } from 'node:async_hooks';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { CLIENT_LENGTH_MAX, type Via } from '#events/envelope.ts';

/** The door that a request came through, and how the program behind it names itself. */
export type Door = {
  via: Via;
  client?: string;
  /** The MCP session that a session ends with which the request creates. */
  mcpSessionId?: string;
  /** Units of the rate limit that were taken for the request before it came through the door. */
  paid?: number;
  /** The longest wait of a create for its browser, where `CREATE_WAIT` is longer; ms. */
  createWaitMs?: number;
};

declare module 'fastify' {
  // oxlint-disable-next-line typescript/consistent-type-definitions
  interface FastifyRequest {
    /** The door that the request came through; null: the REST API. */
    door: Door | null;
  }
}

const passing = new AsyncLocalStorage<Door>();

/**
 * Calls the server from inside, as `server.inject`, on behalf of a request that came through
 * another door: the events that the call causes name the door. No header says so, because a client
 * could send it too.
 * @param work starts the inner requests; requests that it does not start are not concerned
 */
export function throughDoor<Answer>(door: Door, work: () => PromiseLike<Answer>): Promise<Answer> {
  // Awaited inside: an inner request may begin only once its answer is asked for.
  return passing.run(door, async () => await work());
}

/** Notes for each request the door that it came through. */
export function noteDoors(server: FastifyInstance): void {
  server.decorateRequest('door', null);
  server.addHook('onRequest', (request, _reply, done) => {
    request.door = passing.getStore() ?? request.routeOptions.config.door ?? null;
    done();
  });
}

/** The door as the events of a request hold it; without fields for the REST API. */
export function doorOf({ door }: FastifyRequest): { via?: Via; client?: string } {
  if (door === null) return {};
  const client = clientText(door.client ?? '');
  return { via: door.via, ...(client === '' ? {} : { client }) };
}

/**
 * How a program names itself, as events and notes for people hold it: without control characters
 * and of at most CLIENT_LENGTH_MAX characters.
 */
export function clientText(name: string): string {
  const [...characters] = name.toWellFormed().replaceAll(/\p{Cc}+/gu, ' ');
  let text = '';
  for (const character of characters) {
    if (text.length + character.length > CLIENT_LENGTH_MAX) break;
    text += character;
  }
  return text.trim();
}

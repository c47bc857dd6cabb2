import type { FastifyRequest } from 'fastify';
import type { Rejection } from '#src/kernel/errors.ts';

/** The rules of another protocol than the REST API's, for the paths of one prefix. */
export type Dialect = {
  /** `/wd/hub`: that path and all below it, also those that there are not. */
  prefix: string;
  /** The password of Basic credentials is taken as a bearer's. */
  takesPasswords: boolean;
  /** Of all answers that say nothing else. */
  cacheControl: string;
  /** The answer to a refusal. */
  answer(rejection: Rejection): {
    status: number;
    body: object;
    headers?: Readonly<Record<string, string>>;
  };
};

/** The server's, which `buildServer` sets. */
type Speaking = { dialects?: readonly Dialect[] };

/** The dialect of a request's path; null: the REST API's rules hold. */
export function dialectOf({ url, server }: Pick<FastifyRequest, 'url' | 'server'>): Dialect | null {
  for (const dialect of (server as Speaking).dialects ?? [])
    if (isBelow(url, dialect.prefix)) return dialect;
  return null;
}

function isBelow(url: string, prefix: string): boolean {
  const next = url[prefix.length];
  return url.startsWith(prefix) && (next === undefined || next === '/' || next === '?');
}

import type { FastifyRequest } from 'fastify';

const PREFIX = /^\/wd\/hub(?:[/?]|$)/;

/**
 * Whether a request speaks WebDriver, also one to a path that there is not. W3C's rules hold for
 * it, not those of the REST API: Basic credentials are taken, a body of any type and any query;
 * errors have W3C's form, and answers W3C's `Cache-Control`.
 */
export function isWebDriver({ url }: Pick<FastifyRequest, 'url'>): boolean {
  return PREFIX.test(url);
}

import type { FastifyInstance } from 'fastify';

/**
 * Lets the routes of a scope of its own take a body of any type: whatever its `Content-Type` says,
 * also where that is no type, or missing.
 * @param parseAs `stream`: it is passed on as it arrives; `buffer`: as a whole, within the route's
 * `bodyLimit`
 */
export function takeAnyBody(scope: FastifyInstance, parseAs: 'stream' | 'buffer'): void {
  scope.removeAllContentTypeParsers();
  // Fastify refuses what is no type before it looks for a parser.
  scope.addHook('onRequest', ({ headers }, _reply, done) => {
    delete headers['content-type'];
    done();
  });
  if (parseAs === 'stream')
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  else scope.addContentTypeParser('*', { parseAs }, (_request, body, done) => done(null, body));
}

import { reject } from '#src/kernel/errors.ts';
import { refuseUnknown } from '#src/kernel/event-store/unreadable.ts';
import { readEnds } from '#src/kernel/history/ends-of-session.ts';
import { readRelated } from '#src/kernel/history/related.ts';
import { readStory } from '#src/kernel/history/story.ts';
import { loadSession, type ApiDependencies } from '../../dependencies.ts';
import { goneSignal } from '../../http/client-gone.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { SessionWhy } from '../../schemas/history.ts';
import { SessionPath } from '../../schemas/requests.ts';
import { presentWhy } from '../../sessions/public-history.ts';

/** Browsers and servers whose events are read: the newest that the session had. */
const FLEET_MAX = 5;
/** Moves of credits that are looked up: that of the request, and the newest. */
const MOVES_MAX = 2;

/** GET /api/sessions/{id}/why: what `bss why` says, in the form for organizations. */
export function sessionWhy(server: ApiServer, { context }: Pick<ApiDependencies, 'context'>): void {
  server.route({
    method: 'GET',
    url: '/api/sessions/:id/why',
    schema: {
      operationId: 'getSessionWhy',
      tags: ['Sessions'],
      summary: 'Why a session ended, or why it is where it is',
      description:
        'The chain of causes in sentences, and what browsers, servers, timers and ledger did for ' +
        'the session. Also of a session that is archived.',
      params: SessionPath,
      response: { 200: response('The causes, and all that is related', SessionWhy) },
    },
    config: { action: 'read', refusals: ['SESSION_NOT_FOUND'], cost: costs.getSessionWhy },
    async handler(request, reply) {
      const { eventStore, now } = context;
      const { id } = request.params;
      const { organizationId } = request.caller;
      const current = await loadSession(context, organizationId, id);
      const session = { kind: 'session', organizationId, id } as const;
      const signal = goneSignal(reply);
      const ends = current && (await readEnds(eventStore, session, current.sequence, signal));
      const story = ends && (await readStory([ends.events]));
      if (ends === null || story === null)
        return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const related = await readRelated(eventStore, story, {
        now,
        onUnreadable: refuseUnknown,
        fleetMax: FLEET_MAX,
        movesMax: MOVES_MAX,
        signal,
      });
      return reply.send(presentWhy(story, related, ends.isWhole));
    },
  });
}

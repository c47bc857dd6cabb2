import type { Static } from 'typebox';
import type { EventWithState } from '#events/events.ts';
import { isId } from '#events/subjects.ts';
import { within } from '#src/kernel/async/timeout.ts';
import { untilProfileReadable, untilReadable } from '#src/commands/read-your-writes.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { requestMetadata, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { response, type ApiServer } from '#src/roles/api/http/route.ts';
import { SessionPath } from '#src/roles/api/schemas/requests.ts';
import { ProfileSaved } from './schemas.ts';
import { notActive } from '#src/roles/api/sessions/current-session.ts';

/**
 * A server that works takes less: a second for what the page has just written, 10 s until its turn,
 * 10 s to read cookies, and a minute to store the copy. After 90 s another save may begin.
 */
export const SAVED_WITHIN_MS = 85_000;

/** POST /api/sessions/{id}/profile/save: saves the profile while the session goes on. */
export function saveProfile(server: ApiServer, dependencies: ApiDependencies): void {
  const { context, views, sessionEvents } = dependencies;
  server.route({
    method: 'POST',
    url: '/api/sessions/:id/profile/save',
    schema: {
      operationId: 'saveSessionProfile',
      tags: ['Profiles'],
      summary: 'Save the session’s profile now',
      description:
        'As the next version, for a session that was created with `profile` and `save`. The ' +
        'session goes on, and saves the profile once more at its end. The browser stands still ' +
        'while its files are copied. Cookies are saved as they are at this moment; what pages ' +
        'have written into local storage in the last seconds may be missing.',
      params: SessionPath,
      response: { 200: response('It is saved', ProfileSaved) },
    },
    config: {
      action: 'control',
      cost: costs.saveProfile,
      refusals: [
        'SESSION_NOT_FOUND',
        'SESSION_NOT_READY',
        'SESSION_NOT_ACTIVE',
        'SESSION_ENDED',
        'PROFILE_READ_ONLY',
        'PROFILE_SAVE_UNDER_WAY',
        'PROFILE_NOT_SAVED',
      ],
    },
    async handler(request, reply) {
      const { caller } = request;
      const session = { organizationId: caller.organizationId, id: request.params.id };
      if (!isId(session.id))
        return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: session.id }));
      // From before the command on: its outcome may come before its answer.
      const events: EventWithState<'session'>[] = [];
      const seen = Promise.withResolvers<EventWithState<'session'>>();
      let after = Number.POSITIVE_INFINITY;
      const look = (): void => {
        const outcome = events.find((event) => event.sequence > after && isOutcome(event));
        if (outcome !== undefined) seen.resolve(outcome);
      };
      const unwatch = sessionEvents.watch(session.id, (event) => {
        events.push(event);
        look();
      });
      try {
        const command = { type: 'SaveProfile', now: context.now() } as const;
        const metadata = requestMetadata(request, caller);
        const handled = await handleSessionCommand(context, session, command, metadata);
        if (isRejection(handled)) return await sendRejection(reply, handled);
        after = handled.sequence;
        look();
        const outcome = await within(SAVED_WITHIN_MS, seen.promise, () => null);
        const answer = answerTo(outcome);
        if (isRejection(answer)) return await sendRejection(reply, answer);
        const { sequence } = outcome ?? handled;
        await Promise.all([untilReadable(views, sequence), untilProfileReadable(views, sequence)]);
        return await reply.send(answer);
      } finally {
        unwatch();
      }
    },
  });
}

function isOutcome({ type, state }: EventWithState<'session'>): boolean {
  const isReport = type === 'session.profile-saved' || type === 'session.profile-not-saved';
  return isReport || isFinal(state.status);
}

function answerTo(
  outcome: EventWithState<'session'> | null,
): Static<typeof ProfileSaved> | Rejection {
  if (outcome === null)
    return reject('UNAVAILABLE', { part: 'browser-server' }, { retryAfterSeconds: 5 });
  const { type, data, state } = outcome;
  const session_id = state.id;
  if (type === 'session.profile-saved') {
    const { profileId: profile_id, version, bytes } = data;
    return { session_id, profile_id, version, bytes };
  }
  if (type !== 'session.profile-not-saved')
    return notActive(state) ?? reject('SESSION_ENDED', { session_id });
  const { profileId: profile_id, reason, detail } = data;
  return reject('PROFILE_NOT_SAVED', { session_id, profile_id, reason, detail });
}

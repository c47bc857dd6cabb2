import { Type } from 'typebox';
import type { ProfileState } from '#events/profile.ts';
import type { SessionState } from '#events/session.ts';
import { isId } from '#events/subjects.ts';
import { profiles, profilesOf } from '#projections/profiles.ts';
import { projectionId } from '#projections/projection.ts';
import { sessionKey, sessionView } from '#projections/session-view.ts';
import type { Views } from '#projections/store/views.ts';
import { isRejection, reject } from '#src/kernel/errors.ts';
import { newId } from '#src/kernel/ids.ts';
import { untilProfileReadable } from '#src/commands/read-your-writes.ts';
import { createFairExecutor } from '#src/kernel/async/fair-executor.ts';
import { handleProfileCommand } from '#src/commands/session-profile.ts';
import { profilesMax } from '#src/kernel/domain/profile/profile.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { archivesOf } from '#src/features/profiles/profile-vault.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { loadSession, requestMetadata, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { response, type ApiServer } from '#src/roles/api/http/route.ts';
import { limitParameter, offsetParameter } from '#src/roles/api/schemas/paging.ts';
import {
  CreateProfileBody,
  presentProfile,
  presentSummary,
  Profile,
  ProfileList,
  ProfilePath,
  ProfileRemoved,
} from './schemas.ts';

type Dependencies = Pick<ApiDependencies, 'context' | 'views' | 'objects'>;

/** /api/profiles: browsers' profiles that are kept between sessions. */
export function profileRoutes(server: ApiServer, dependencies: Dependencies): void {
  createProfile(server, dependencies);
  listProfiles(server, dependencies);
  getProfile(server, dependencies);
  removeProfile(server, dependencies);
}

/** Creates that wait: each changes the organization, on which they would meet. */
const CREATES = { places: 1_000, placesPerOwner: 200 };

async function countOf(views: Dependencies['views'], organizationId: string): Promise<number> {
  const [count = 0] = await views.counts(projectionId(profiles), [profilesOf(organizationId)]);
  return count;
}

function createProfile(server: ApiServer, { context, views }: Dependencies): void {
  const inTurn = createFairExecutor(CREATES, 'event-log');
  server.route({
    method: 'POST',
    url: '/api/profiles',
    schema: {
      operationId: 'createProfile',
      tags: ['Profiles'],
      summary: 'Create a profile',
      description:
        'It is empty until a session that was created with it and `save` has ended. An ' +
        `organization has at most ${profilesMax}.`,
      body: CreateProfileBody,
      response: { 201: response('The profile', Profile) },
    },
    config: { action: 'control', refusals: ['PROFILE_LIMIT_EXCEEDED'] },
    async handler(request, reply) {
      const { caller } = request;
      const { organizationId, userId: by } = caller;
      const created = await inTurn(organizationId, () =>
        handleProfileCommand(
          context,
          organizationId,
          newId('prf'),
          { type: 'CreateProfile', name: request.body.name, by, now: context.now() },
          requestMetadata(request, caller),
          () => countOf(views, organizationId),
        ),
      );
      if (isRejection(created)) return sendRejection(reply, created);
      await untilProfileReadable(views, created.sequence);
      return reply.code(201).send(presentProfile(created.state, null));
    },
  });
}

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;
const ListQuery = Type.Object(
  {
    limit: limitParameter(LIMIT_DEFAULT, LIMIT_MAX),
    offset: offsetParameter('profiles'),
  },
  { additionalProperties: false },
);

function listProfiles(server: ApiServer, { views }: Dependencies): void {
  server.route({
    method: 'GET',
    url: '/api/profiles',
    schema: {
      operationId: 'listProfiles',
      tags: ['Profiles'],
      summary: 'List the organization’s profiles',
      description: 'Newest first, without their versions.',
      querystring: ListQuery,
      response: { 200: response('A page', ProfileList) },
    },
    config: { action: 'read', refusals: [] },
    async handler(request, reply) {
      const { organizationId } = request.caller;
      const { limit = LIMIT_DEFAULT, offset = 0 } = request.query;
      const query = { lists: [profilesOf(organizationId)], offset, limit };
      const { items, total } = await views.page(projectionId(profiles), query);
      const page = JSON.parse(`[${items}]`) as ProfileState[];
      const writers = await openWriters(views, organizationId, page);
      const all = page.map((profile, at) => presentSummary(profile, writers[at] ?? null));
      return reply.send({ profiles: all, total });
    },
  });
}

/** The session that saves each of the profiles, where it is open, by the read model. */
async function openWriters(
  views: Views,
  organizationId: string,
  page: readonly ProfileState[],
): Promise<(string | null)[]> {
  const ids = page.map(({ writer }) => writer).filter((id) => id !== null);
  const keys = ids.map((id) => sessionKey(organizationId, id));
  const found = keys.length === 0 ? [] : await views.readMany(projectionId(sessionView), keys);
  const sessions = found.map((view) => (view === null ? null : (JSON.parse(view) as SessionState)));
  const open = new Set(sessions.map((one) => (one !== null && !isFinal(one.status) ? one.id : '')));
  return page.map(({ writer }) => (writer !== null && open.has(writer) ? writer : null));
}

function getProfile(server: ApiServer, { context }: Dependencies): void {
  server.route({
    method: 'GET',
    url: '/api/profiles/:id',
    schema: {
      operationId: 'getProfile',
      tags: ['Profiles'],
      summary: 'Read a profile',
      description: 'With the versions that are kept, and what each holds by name.',
      params: ProfilePath,
      response: { 200: response('The profile', Profile) },
    },
    config: { action: 'read', refusals: ['PROFILE_NOT_FOUND'] },
    async handler(request, reply) {
      const { organizationId } = request.caller;
      const { id } = request.params;
      const profile = await loadProfile({ context }, organizationId, id);
      if (profile === null)
        return sendRejection(reply, reject('PROFILE_NOT_FOUND', { profile_id: id }));
      const { writer } = profile;
      const session = writer === null ? null : await loadSession(context, organizationId, writer);
      const isOpen = session !== null && !isFinal(session.state.status);
      return reply.send(presentProfile(profile, isOpen ? writer : null));
    },
  });
}

async function loadProfile(
  { context }: Pick<Dependencies, 'context'>,
  organizationId: string,
  id: string,
): Promise<ProfileState | null> {
  if (!isId(id)) return null;
  const aggregate = { kind: 'profile', organizationId, id } as const;
  const fresh = { fromLeader: true };
  const { state } = await loadState<'profile'>(context.eventStore, aggregate, fresh);
  return state === null || state.removedAt !== null ? null : state;
}

function removeProfile(server: ApiServer, { context, views, objects }: Dependencies): void {
  server.route({
    method: 'DELETE',
    url: '/api/profiles/:id',
    schema: {
      operationId: 'removeProfile',
      tags: ['Profiles'],
      summary: 'Remove a profile',
      description:
        'With all its versions. Sessions that began with it go on; it is refused while a session ' +
        'is open that saves it.',
      params: ProfilePath,
      response: { 200: response('It is removed', ProfileRemoved) },
    },
    config: { action: 'control', refusals: ['PROFILE_NOT_FOUND', 'PROFILE_IN_USE'] },
    async handler(request, reply) {
      const { caller } = request;
      const { organizationId, userId: by } = caller;
      const { id } = request.params;
      if (!isId(id)) return sendRejection(reply, reject('PROFILE_NOT_FOUND', { profile_id: id }));
      const removed = await handleProfileCommand(
        context,
        organizationId,
        id,
        { type: 'RemoveProfile', by, now: context.now() },
        requestMetadata(request, caller),
        () => countOf(views, organizationId),
      );
      // Also of a profile that is removed already: its first removal may have been cut off here.
      const isGone = !isRejection(removed) || removed.code === 'PROFILE_NOT_FOUND';
      if (isGone) await objects.removeAll(archivesOf({ organizationId, profileId: id }));
      if (isRejection(removed)) return sendRejection(reply, removed);
      await untilProfileReadable(views, removed.sequence);
      return reply.send({ message: `Profile ${id} has been removed.`, id });
    },
  });
}

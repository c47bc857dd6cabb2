import { loadState } from '#src/kernel/event-store/load-state.ts';
import { emptyLedger } from '#src/kernel/domain/organization/ledger.ts';
import { Organization } from '../../schemas/organization.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { response, type ApiServer } from '../../http/route.ts';

/** GET /api/organization: the caller's organization as the event store has it. */
export function getOrganization(
  server: ApiServer,
  { context }: Pick<ApiDependencies, 'context'>,
): void {
  server.route({
    method: 'GET',
    url: '/api/organization',
    schema: {
      operationId: 'getOrganization',
      tags: ['Organization'],
      summary: "The caller's organization",
      description:
        'Its tier with the limits, the sessions that count towards them, its credits, and the ' +
        'origins of pages that may embed shares. `organization_role` and `user_id` are those of ' +
        'the caller.',
      response: { 200: response('The organization', Organization) },
    },
    config: { action: 'read', refusals: [] },
    async handler({ caller: { organizationId, userId, role, limits } }, reply) {
      const { eventStore } = context;
      const leader = { fromLeader: true };
      const [{ state: organization }, { state: ledger }] = await Promise.all([
        loadState<'organization'>(eventStore, { kind: 'organization', organizationId }, leader),
        loadState<'ledger'>(eventStore, { kind: 'ledger', organizationId }, leader),
      ]);
      if (organization === null)
        throw new Error(`organization ${organizationId} has a credential, but no event`);
      const { slotsInUse, creditsAvailable, creditsReserved, creditsUsed, creditsGranted } =
        ledger ?? emptyLedger;
      return reply.send({
        id: organizationId,
        name: organization.name,
        organization_role: role,
        user_id: userId,
        tier: organization.tier,
        limits: {
          requests_per_minute: limits.requestsPerMinute,
          concurrent_sessions: limits.concurrentSessions,
        },
        concurrent_sessions: slotsInUse,
        credits: {
          balance: creditsAvailable,
          reserved: creditsReserved,
          used: creditsUsed,
          granted: creditsGranted,
        },
        allowed_origins: organization.allowedOrigins ?? [],
      });
    },
  });
}

import type { FastifyReply, FastifyRequest } from 'fastify';
import { load } from '#src/event-store/load-state.ts';
import { emptyLedger } from '#src/domain/organization/ledger.ts';
import { Organization } from '../../schemas/organization.ts';
import type { Caller } from '../../auth/authenticate.ts';
import type { ApiParts } from '../../dependencies.ts';
import type { Route } from '../../http/route.ts';

/** GET /api/organization: what the caller's organization may, has and uses, as the log has it. */
export function getOrganization({ desk }: ApiParts): Route {
  async function handle(_: FastifyRequest, reply: FastifyReply, caller: Caller) {
    const { organizationId, limits } = caller;
    const leader = { fromLeader: true };
    const [{ state: organization }, { state: ledger }] = await Promise.all([
      load<'organization'>(desk.log, { kind: 'organization', organizationId }, leader),
      load<'ledger'>(desk.log, { kind: 'ledger', organizationId }, leader),
    ]);
    if (organization === null) throw new Error(`${organizationId} is let in, but not in the log`);
    const { slotsInUse, creditsAvailable, creditsReserved, creditsUsed, creditsGranted } =
      ledger ?? emptyLedger;
    return reply.send({
      id: organizationId,
      name: organization.name,
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
    });
  }
  return {
    method: 'GET',
    path: '/api/organization',
    operationId: 'getOrganization',
    summary: "The caller's organization",
    details: 'Its tier with the limits, the sessions that count towards them, and its credits.',
    action: 'read',
    answer: { status: 200, schema: Organization, description: 'The organization' },
    refusals: [],
    handle,
  };
}

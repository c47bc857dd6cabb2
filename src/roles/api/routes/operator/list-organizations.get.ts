import { Type } from 'typebox';
import { emptyLedger } from '#src/kernel/domain/organization/ledger.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { readOrganizations } from '#src/commands/operator/organizations.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { OperatorOrganizations } from '../../schemas/operator.ts';
import { limitParameter } from '../../schemas/paging.ts';

const LIMIT = { default: 100, max: 500 };
/** Ledgers read side by side. */
const AT_ONCE = 8;

const Query = Type.Object(
  {
    q: Type.Optional(
      Type.String({ maxLength: 64, description: 'those whose id or name contains it' }),
    ),
    limit: limitParameter(LIMIT.default, LIMIT.max),
    after: Type.Optional(
      Type.String({ maxLength: 64, description: '`next` of the previous page: an id' }),
    ),
  },
  { additionalProperties: false },
);

/** Small and capital letters are the same. */
function matcherOf(q: string): (organization: { id: string; name: string }) => boolean {
  const wanted = q.trim().toLowerCase();
  return ({ id, name }) => [id, name].some((text) => text.toLowerCase().includes(wanted));
}

/** GET /api/operator/organizations: a page of all organizations, ordered by id. */
export function listOrganizations(
  server: ApiServer,
  dependencies: Pick<ApiDependencies, 'context' | 'operator'>,
): void {
  server.route({
    method: 'GET',
    url: '/api/operator/organizations',
    schema: {
      operationId: 'listOrganizations',
      tags: ['Operator'],
      summary: 'All organizations with their credits and limits',
      querystring: Query,
      response: { 200: response('A page, ordered by id', OperatorOrganizations) },
    },
    config: { action: 'operator', refusals: [] },
    async handler(request, reply) {
      const { context, operator } = dependencies;
      const { limit = LIMIT.default, after = '', q = '' } = request.query;
      const isWanted = matcherOf(q);
      const known = (await readOrganizations(context.eventStore, () => undefined))
        .filter(({ state }) => state.id > after && isWanted(state))
        .toSorted((a, b) => (a.state.id < b.state.id ? -1 : 1));
      const page = known.slice(0, limit);
      const ledgers: (typeof emptyLedger)[] = [];
      for (let at = 0; at < page.length; at += AT_ONCE) {
        const some = page.slice(at, at + AT_ONCE).map(({ state }) => ledgerOf(state.id));
        ledgers.push(...(await Promise.all(some)));
      }
      const organizations = page.map(({ state, createdAt }, at) => {
        const ledger = ledgers[at] ?? emptyLedger;
        return {
          id: state.id,
          name: state.name,
          tier: state.tier,
          created_at: createdAt,
          open_sessions: ledger.slotsInUse,
          sessions_limit: operator.tiers[state.tier].concurrentSessions,
          credits_available: ledger.creditsAvailable,
          credits_reserved: ledger.creditsReserved,
          keys: state.keys.length,
        };
      });
      const next = known.length > limit ? (page.at(-1)?.state.id ?? null) : null;
      return reply.send({ organizations, next });
    },
  });

  async function ledgerOf(organizationId: string) {
    const ledger = { kind: 'ledger', organizationId } as const;
    const { state } = await loadState<'ledger'>(dependencies.context.eventStore, ledger);
    return state ?? emptyLedger;
  }
}

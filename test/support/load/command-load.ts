import { expect } from 'vitest';
import { filtersFor } from '#events/subjects.ts';
import type { ServiceLog } from '#test/support/service/service-log.ts';
import { eventually } from '#test/support/service/service.ts';
import { OPERATOR_TOKEN, shareService, type Tenant } from '#test/support/shared/shared-service.ts';
import { lastOf } from '#test/support/stores/last-of.ts';

/**
 * An organization with one session, the target of a load of bad requests; `expectUnchanged` checks
 * that they had no effect.
 */
export async function startCommandLoad() {
  const shared = await shareService();
  const { service, log } = shared;
  const tenant = await shared.organization();
  const { owner: api, key } = tenant;
  const session: string = (await api.create({ session_name: 'the one' })).body.id;
  const printed = service.output().length;
  const before = await facts(tenant, log, session);

  /** The service is healthy, has the same session and ledger as before, and has logged no bug. */
  async function expectUnchanged(answersMin: number): Promise<void> {
    const isHealthy = async () => (await api.get('/api/health')).body.status === 'healthy';
    await eventually(isHealthy, 'the service is healthy');
    expect(await facts(tenant, log, session)).toEqual(before);
    expect(before).toMatchObject({
      list: { total: 1, sessions: [{ id: session, session_name: 'the one', status: 'active' }] },
      ledger: { slotsInUse: 1 },
    });
    expect(api.held()).toBeGreaterThan(answersMin);
    expect(service.output().slice(printed)).not.toContain('"msg":"unexpected error"');
  }
  return {
    apiUrl: service.apiUrl,
    api,
    key,
    operator: api.as(OPERATOR_TOKEN),
    session,
    expectUnchanged,
    [Symbol.asyncDispose]: () => shared[Symbol.asyncDispose](),
  };
}

export type CommandLoad = Awaited<ReturnType<typeof startCommandLoad>>;

/** What bad input must not change. */
async function facts({ id, owner }: Tenant, log: ServiceLog, session: string) {
  const list = await eventually(async () => {
    const { status, body } = await owner.get('/api/sessions?limit=100');
    return status !== 503 && (body as object);
  }, 'the list is current');
  return {
    ledger: await log.ledger(id),
    newestEvent: await lastOf(log.eventStore, filtersFor(id, null)),
    list,
    session: (await owner.get(`/api/sessions/${session}`)).body,
  };
}

/** Each value with its JSON, cut to 60 characters, as a name. */
export function named<Value>(values: readonly Value[]): [name: string, value: Value][] {
  return values.map((value) => [JSON.stringify(value).slice(0, 60), value]);
}

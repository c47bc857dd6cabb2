import { expect } from 'vitest';
import { filters } from '#events/subjects.ts';
import { eventually, startService } from '#test/support/service/service.ts';
import { connectApi, type ApiClient } from '#test/support/clients/api-client.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';
import { lastOf } from '#test/support/stores/last-of.ts';

const OPERATOR_TOKEN = 'operator-4711-token-of-the-tests';

/**
 * A service with one session, the target of a load of bad requests; `expectUnchanged` checks that
 * they had no effect.
 */
export async function startCommandLoad() {
  const plenty = { requests_per_minute: 1_000_000 };
  const service = await startService({
    TIERS: JSON.stringify({ max: plenty, free: plenty }),
    OPERATOR_TOKEN,
  });
  const api = await connectApi(service.apiUrl);
  const log = await openLog(service);
  const session: string = (await api.create({ session_name: 'the one' })).body.id;
  const before = await facts(api, log, session);

  /** The service is healthy, has the same session and ledger as before, and has logged no bug. */
  async function expectUnchanged(answersMin: number): Promise<void> {
    const isHealthy = async () => (await api.get('/api/health')).body.status === 'healthy';
    await eventually(isHealthy, 'the service is healthy');
    expect(await facts(api, log, session)).toEqual(before);
    expect(before).toMatchObject({
      list: { total: 1, sessions: [{ id: session, session_name: 'the one', status: 'active' }] },
      ledger: { slotsInUse: 1 },
    });
    expect(api.held()).toBeGreaterThan(answersMin);
    expect(service.output()).not.toContain('"msg":"unexpected error"');
  }
  return {
    apiUrl: service.apiUrl,
    api,
    operator: api.as(OPERATOR_TOKEN),
    session,
    expectUnchanged,
    async [Symbol.asyncDispose]() {
      await log[Symbol.asyncDispose]();
      await service[Symbol.asyncDispose]();
    },
  };
}

export type CommandLoad = Awaited<ReturnType<typeof startCommandLoad>>;

/** What bad input must not change. */
async function facts(api: ApiClient, log: ServiceLog, session: string) {
  const list = await eventually(async () => {
    const { status, body } = await api.get('/api/sessions?limit=100');
    return status !== 503 && (body as object);
  }, 'the list is current');
  return {
    ledger: await log.ledger('dev'),
    newestSessionEvent: await lastOf(log.eventStore, filters.sessions),
    list,
    session: (await api.get(`/api/sessions/${session}`)).body,
  };
}

/** Each value with its JSON, cut to 60 characters, as a name. */
export function named<Value>(values: readonly Value[]): [name: string, value: Value][] {
  return values.map((value) => [JSON.stringify(value).slice(0, 60), value]);
}

import { startService, type RunningService } from './service.ts';

/** Both processes need it: an address of one has to be valid at the other. */
export const MASTER_KEY = 'master-key-of-two-processes-0123456789';

/**
 * A further API process of a service that was started with MASTER_KEY: same event store, same
 * Redis.
 */
export async function startSecondApi(
  first: RunningService,
  env: Record<string, string> = {},
): Promise<RunningService> {
  const { nats_url, redis_url } = first.runtime;
  return startService({
    ROLES: 'api',
    NATS_URL: nats_url,
    REDIS_URL: redis_url,
    MASTER_KEY,
    ...env,
  });
}

/** A service with two API processes; `env` is for both. */
export async function startTwoApis(
  env: Record<string, string> = {},
  own: { first?: Record<string, string>; second?: Record<string, string> } = {},
) {
  const first = await startService({ MASTER_KEY, ...env, ...own.first });
  try {
    const second = await startSecondApi(first, { ...env, ...own.second });
    return {
      first,
      second,
      async [Symbol.asyncDispose]() {
        await second[Symbol.asyncDispose]();
        await first[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await first[Symbol.asyncDispose]();
    throw error;
  }
}

import { expect } from 'vitest';
import { scratchDir } from '#test/support/scratch.ts';
import { bssWith } from '#test/support/clients/command-line.ts';
import { passwordOf, startNatsWithRoles, type NatsUser } from '#test/support/servers/nats-roles.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import { startRedis } from '#test/support/servers/real-redis.ts';
import { startService, type RunningService } from '#test/support/service/service.ts';

/** A service role by role: a process and a NATS user each, on deploy/nats.conf. */

export const roles = [
  'api',
  'projector',
  'provisioner',
  'gateway',
  'timekeeper',
  'archivist',
  'webhooks',
] as const;
export type Role = (typeof roles)[number];
type Env = Record<string, string>;
const MASTER_KEY = 'tGm4Zk0vQe8RzjU1c7LwXb5HfAy2NpDs9KiJ';

export type Roles = Awaited<ReturnType<typeof startRoles>>;

/** @param of variables of one role, laid over those of all */
export async function startRoles(env: Env, of: Partial<Record<Role, Env>> = {}) {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNatsWithRoles());
  const redis = stack.use(await startRedis());
  const archive = stack.use(await scratchDir());
  const [gatewayPort, tlsPort] = await freePorts(2);
  const shared: Env = {
    MASTER_KEY,
    REDIS_URL: redis.url,
    GATEWAY_PORT: `${gatewayPort}`,
    GATEWAY_TLS_PORT: `${tlsPort}`,
    NATS_ISSUER_SEED: nats.issuerSeed,
    ARCHIVE_URL: archive.path,
    TIERS: JSON.stringify({ max: { requests_per_minute: 1_000_000 } }),
    ...env,
  };
  const started = roles.map(async (role) => {
    const own = { ...shared, ...access(role), ROLES: role, ...of[role] };
    return [role, stack.use(await startService(own))] as const;
  });
  const services = Object.fromEntries(await Promise.all(started)) as Record<Role, RunningService>;

  function access(user: NatsUser): Env {
    return { NATS_URL: nats.url, NATS_USER: user, NATS_PASSWORD: passwordOf(user) };
  }
  const operator: Env = { ...access('operator'), REDIS_URL: redis.url, MASTER_KEY };
  async function bss(...args: string[]): Promise<string> {
    const all = { ...operator, ARCHIVE_URL: archive.path };
    const { code, stdout, stderr } = await bssWith(all, ...args);
    expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
    return stdout;
  }
  const all = stack.move();
  return {
    services,
    nats,
    archive: archive.path,
    /** How a process comes to NATS as this user. */
    access,
    /** Variables of `bss` as an operator has it. */
    operator,
    /** Runs `bss` with the operator's user. */
    bss,
    bssJson: async <Found>(...args: string[]) => JSON.parse(await bss(...args, '--json')) as Found,
    /** Permission violations, in the logs of the servers and of the processes. */
    objections(): string[] {
      const logged = Object.values(services).flatMap((service) =>
        service
          .output()
          .split('\n')
          .filter((line) => /Violation|NATS reported an error/.test(line)),
      );
      return [...nats.violations(), ...logged];
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

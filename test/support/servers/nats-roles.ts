import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newAccountSeed, readIssuer } from '#src/features/nats-tenants/nkey.ts';
import { startNats, type RealNats } from './real-nats.ts';

/** The users of deploy/nats.conf: one for each role, the command line, and all roles at once. */
export const natsUsers = [
  'api',
  'projector',
  'provisioner',
  'gateway',
  'timekeeper',
  'archivist',
  'webhooks',
  'operator',
  'service',
] as const;
export type NatsUser = (typeof natsUsers)[number];

export const passwordOf = (user: NatsUser) => `pw-${user}-4f8a1c`;

/** A real nats-server with the configuration in deploy/. */
export type NatsWithRoles = RealNats & {
  issuerSeed: string;
  /** With the user's name and password. */
  urlOf(user: NatsUser): string;
  /** The permission violations in its log. */
  violations(): string[];
};

const shipped = (name: string) =>
  readFileSync(new URL(`../../../deploy/${name}`, import.meta.url), 'utf8');

export async function startNatsWithRoles(): Promise<NatsWithRoles> {
  const folder = await mkdtemp(join(tmpdir(), 'nats-roles-'));
  const log = join(folder, 'nats.log');
  const issuerSeed = newAccountSeed();
  // The server reads its environment, which is that of this process.
  for (const user of natsUsers)
    process.env[`NATS_${user.toUpperCase()}_PASSWORD`] = passwordOf(user);
  process.env['NATS_ISSUER'] = readIssuer(issuerSeed)?.publicKey;
  // The test's server gets its folder by an argument.
  const users = shipped('nats.conf').replace(/^ *store_dir:.*$/m, '');
  const config = [users, shipped('nats-tenants.conf'), `log_file: "${log}"`];
  const nats = await startNats(config.join('\n'));
  return {
    ...nats,
    issuerSeed,
    urlOf: (user) => nats.url.replace('//', `//${user}:${passwordOf(user)}@`),
    violations: () =>
      readFileSync(log, 'utf8')
        .split('\n')
        .filter((line) => /Violation/.test(line)),
    async [Symbol.asyncDispose]() {
      await nats[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

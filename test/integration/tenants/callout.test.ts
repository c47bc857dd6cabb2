import { jetstream } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PUBLIC_STREAM } from '#events/subjects.ts';
import { TENANT_API, tenantDurable, tenantInbox, type TenantUse } from '#events/tenant-subjects.ts';
import { hashKey } from '#src/ids.ts';
import { causeBy } from '#src/commands/metadata.ts';
import { connectJetStream, type JetStreamConnection } from '#src/event-store/jetstream/connect.ts';
import { createMemoryEventLog } from '#src/event-store/event-store.memory.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { handle } from '#src/commands/handle-command.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import {
  decideOrganization,
  type OrganizationCommand,
} from '#src/domain/organization/organization.ts';
import { answerCallouts } from '#src/tenants/callout.jetstream.ts';
import { readIssuer, type Issuer } from '#src/tenants/nkey.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { startNatsWithRoles, type NatsWithRoles } from '#test/support/servers/nats-roles.ts';

/** Who is let in by the servers, and for how long: with keys and a log that the test moves. */

let nats: NatsWithRoles;
let connection: JetStreamConnection;
let issuer: Issuer;
beforeAll(async () => {
  nats = await startNatsWithRoles();
  connection = await connectJetStream({ url: nats.urlOf('api') });
  issuer = readIssuer(nats.issuerSeed) as Issuer;
});
afterAll(async () => {
  await connection?.[Symbol.asyncDispose]();
  await nats?.[Symbol.asyncDispose]();
});

type Follow = EventLog['follow'];

/** An organization with one key, and a process that lets it in. */
async function open(following: (follow: Follow, revoke: () => Promise<void>) => Follow) {
  const organizationId = freshId('org');
  const key = freshId('key');
  const hash = hashKey(key);
  const log = createMemoryEventLog();
  const desk = { log, now: Date.now };
  const organization = { id: organizationId, name: 'Acme', tier: 'pro', credits: 0 } as const;
  await registerOrganization(desk, organization, causeBy('test'));

  async function decide(command: OrganizationCommand): Promise<number> {
    const handled = await handle<'organization'>(
      desk,
      { kind: 'organization', organizationId },
      (state) => decideOrganization(command, state),
      causeBy('test'),
    );
    if (!('sequence' in handled)) throw new Error(JSON.stringify(handled));
    return handled.sequence;
  }
  const keyId = 'key_1';
  await decide({ type: 'IssueKey', key: { keyId, hash, role: 'member', userId: 'ada' } });
  let revokedAt = Infinity;
  let isLive = true;
  const callouts = await answerCallouts({
    connection,
    log: {
      ...log,
      follow: following(log.follow, async () => {
        revokedAt = await decide({ type: 'RevokeKey', keyId });
      }),
    },
    logger: pino({ level: 'silent' }),
    issuer,
    keys: {
      organizationOf: (keyHash) => (isLive && keyHash === hash ? organizationId : null),
      // What is not waited for does not count yet.
      async reached(sequence) {
        if (sequence >= revokedAt) isLive = false;
      },
    },
    connectionsPerKeyMax: 10,
    now: Date.now,
  });
  return {
    organizationId,
    /** @throws Error where it is not let in */
    comeIn: (use: TenantUse): Promise<NatsConnection> =>
      connect({
        servers: nats.url,
        user: use,
        pass: key,
        inboxPrefix: tenantInbox(hash),
        reconnect: false,
      }),
    [Symbol.asyncDispose]: () => callouts[Symbol.asyncDispose](),
  };
}

describe('a tenant', () => {
  it('comes in to its durable consumer that was restored to where a backup left it', async () => {
    await using tenant = await open((follow) => follow);
    const { name, filter } = tenantDurable(tenant.organizationId);
    await connection.jsm.consumers.add(PUBLIC_STREAM, {
      durable_name: name,
      filter_subject: filter,
      ack_policy: 'explicit',
      deliver_policy: 'by_start_sequence',
      opt_start_seq: 7,
    });
    const nc = await tenant.comeIn('durable');
    const js = jetstream(nc, { checkAPI: false, apiPrefix: TENANT_API });
    const consumer = await js.consumers.get(PUBLIC_STREAM, name);
    expect((await consumer.info()).config.opt_start_seq).toBe(7);
    await nc.close();
  });

  const FAILS = 'fails';
  it.each([
    { when: 'just before its end is followed', follows: ['revoke'] },
    { when: 'just before it is followed again', follows: [FAILS, 'revoke'] },
    { when: 'while it is not followed', follows: [`revoke, ${FAILS}`] },
  ])('is disconnected where its key is revoked $when', async ({ follows }) => {
    const { promise: isIn, resolve: comesIn } = Promise.withResolvers<void>();
    const script = [...follows];
    await using tenant = await open(
      (follow, revoke) =>
        async function* followOn(options) {
          const step = script.shift() ?? '';
          if (step.includes('revoke')) {
            await isIn;
            await revoke();
          }
          if (step.endsWith(FAILS)) throw new Error('the log is away');
          yield* follow(options);
        },
    );
    const nc = await tenant.comeIn('live');
    comesIn();
    await nc.closed();
    await expect(tenant.comeIn('live')).rejects.toThrow(/[Aa]uthorization/);
  });
});

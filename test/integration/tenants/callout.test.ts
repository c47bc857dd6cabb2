import { jetstream } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PUBLIC_STREAM } from '#events/subjects.ts';
import { TENANT_API, tenantDurable, tenantInbox, type TenantUse } from '#events/tenant-subjects.ts';
import { hashKey } from '#src/kernel/ids.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import {
  decideOrganization,
  type OrganizationCommand,
} from '#src/kernel/domain/organization/organization.ts';
import { answerCallouts } from '#src/features/nats-tenants/callout.jetstream.ts';
import { readIssuer, type Issuer } from '#src/features/nats-tenants/nkey.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { startNatsWithRoles, type NatsWithRoles } from '#test/support/servers/nats-roles.ts';

/**
 * Admission to the NATS servers and its duration, with keys and an event store that the test
 * changes.
 */

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

type Follow = EventStore['subscribe'];

/** An organization with one key, and a process that admits it. */
async function open(following: (follow: Follow, revoke: () => Promise<void>) => Follow) {
  const organizationId = freshId('org');
  const key = freshId('key');
  const hash = hashKey(key);
  const eventStore = createMemoryEventStore();
  const context = createCommandContext(eventStore, Date.now);
  const organization = { id: organizationId, name: 'Acme', tier: 'pro', credits: 0 } as const;
  await registerOrganization(context, organization, newMetadata('test'));

  async function decide(command: OrganizationCommand): Promise<number> {
    const handled = await handleCommand<'organization'>(
      context,
      { kind: 'organization', organizationId },
      (state) => decideOrganization(command, state),
      newMetadata('test'),
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
    eventStore: {
      ...eventStore,
      subscribe: following(eventStore.subscribe, async () => {
        revokedAt = await decide({ type: 'RevokeKey', keyId });
      }),
    },
    logger: pino({ level: 'silent' }),
    issuer,
    keys: {
      organizationOf: (keyHash) => (isLive && keyHash === hash ? organizationId : null),
      // An event that is not waited for is not applied yet.
      async reached(sequence) {
        if (sequence >= revokedAt) isLive = false;
      },
    },
    connectionsPerKeyMax: 10,
    now: Date.now,
  });
  return {
    organizationId,
    /** @throws Error if the connection is not admitted */
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
  it('connects to its durable consumer that was restored to the position in a backup', async () => {
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
    { when: 'just before the subscription starts', follows: ['revoke'] },
    { when: 'just before the subscription is repeated', follows: [FAILS, 'revoke'] },
    { when: 'while there is no subscription', follows: [`revoke, ${FAILS}`] },
  ])('is disconnected if its key is revoked $when', async ({ follows }) => {
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

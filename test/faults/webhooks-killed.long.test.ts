import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  createCommandContext,
  handleCommand,
  type CommandContext,
} from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { parseMasterKeys } from '#src/kernel/master-keys.ts';
import { createWebhookSecrets } from '#src/features/webhooks/signature.ts';
import { aSession } from '#test/support/events.fixture.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';
import { startRedis, type RealRedis } from '#test/support/servers/real-redis.ts';
import { startMain, type MainProcess } from '#test/support/service/main-process.ts';
import { eventually } from '#test/support/service/service.ts';
import { appendEach } from '#test/support/stores/event-stores.ts';
import { startReceiver } from '#test/support/webhooks/receiver.ts';

/**
 * A process of the role `webhooks`, with a thousand webhooks, with NATS killed under it, and killed
 * itself between a send and its note of it, again and again: it, or its successor, repeats, and
 * leaves nothing out.
 */

const ORGANIZATION = 'acme';
const WEBHOOK = 'whk_killed';
const SESSIONS = 6;
const EVENTS_EACH = 15;
const KILLS = 4;
/** Deliveries between two kills. */
const BETWEEN = 12;
/** Of each of so many organizations: the most that one may have. */
const WEBHOOKS_EACH = 20;
const ORGANIZATIONS = 50;
/** Of 3,000 deliveries. */
const BEFORE_KILL = 200;
const DELIVERED_WITHIN_MS = 240_000;

let nats: RealNats;
let redis: RealRedis;
let connection: JetStreamConnection;
let context: CommandContext;
const masterKey = randomBytes(36).toString('base64url');

beforeAll(async () => {
  nats = await startNats();
  redis = await startRedis();
  connection = await connectJetStream({ url: nats.url });
  context = createCommandContext(createJetStreamEventStore(connection), Date.now);
  await register(ORGANIZATION);
});
afterAll(async () => {
  await connection?.[Symbol.asyncDispose]();
  await redis?.[Symbol.asyncDispose]();
  await nats?.[Symbol.asyncDispose]();
});

const startSender = () =>
  startMain({
    ...{ ROLES: 'webhooks', NATS_URL: nats.url, REDIS_URL: redis.url, MASTER_KEY: masterKey },
    WEBHOOKS_ALLOW_PRIVATE: 'yes',
  });

async function register(id: string): Promise<void> {
  const asked = { id, name: 'Acme', tier: 'max', credits: 1_000 } as const;
  await registerOrganization(context, asked, newMetadata('test'));
}

async function addWebhook(
  endpoint: string,
  { organizationId = ORGANIZATION, webhookId = WEBHOOK, types = [] as string[] } = {},
): Promise<void> {
  await handleCommand<'organization'>(
    context,
    { kind: 'organization', organizationId },
    (organization) =>
      decideOrganization(
        {
          type: 'AddWebhook',
          webhook: {
            ...{ webhookId, endpoint, address: endpoint, types, labels: {} },
            ...{ createdAt: new Date().toISOString(), by: 'ada' },
          },
        },
        organization,
      ),
    newMetadata('test'),
  );
}

test('a sender killed after a send repeats it, loses none, and keeps the order of each session', async () => {
  const { secretOf } = createWebhookSecrets(parseMasterKeys(masterKey));
  let sender: MainProcess | null = null;
  /** Ids of the deliveries at which the sender died, before it had an answer or just after. */
  const killedAt: string[] = [];
  let sinceKill = 0;
  await using receiver = await startReceiver(
    () => secretOf(WEBHOOK, 1),
    ({ id }, _count, reply) => {
      sinceKill += 1;
      const isKill = killedAt.length < KILLS && sinceKill > BETWEEN && sender !== null;
      // Every other time the answer is on its way when it dies.
      if (isKill && killedAt.length % 2 === 1) reply.writeHead(204).end();
      if (isKill) {
        sinceKill = 0;
        killedAt.push(id);
        const dying = sender;
        sender = null;
        void dying?.end('SIGKILL');
      } else if (!reply.headersSent) reply.writeHead(204).end();
    },
  );
  await addWebhook(receiver.url);
  const sessions = Array.from({ length: SESSIONS }, () => aSession(ORGANIZATION));
  await Promise.all(
    sessions.map((session) => appendEach(context.eventStore, session, EVENTS_EACH)),
  );
  const ids = new Set<string>();
  const ordered = new Map<string, string[]>();
  for (const session of sessions) {
    const history: string[] = [];
    for await (const event of context.eventStore.history(session)) history.push(event.id);
    expect(history).toHaveLength(EVENTS_EACH);
    ordered.set(session.id, history);
    for (const id of history) ids.add(id);
  }
  const folders: MainProcess[] = [];
  const got = () => new Set(receiver.received.map(({ id }) => id));
  while (![...ids].every((id) => got().has(id)) || killedAt.length < KILLS) {
    const one = await startSender();
    folders.push(one);
    sender = one;
    const kills = killedAt.length;
    await eventually(
      () => killedAt.length > kills || [...ids].every((id) => got().has(id)),
      'it is killed, or has sent everything',
    );
    if (killedAt.length === kills) break;
  }
  expect(killedAt).toHaveLength(KILLS);
  // What was sent without an answer is sent again.
  const times = (id: string) => receiver.received.filter((one) => one.id === id).length;
  await eventually(() => times(killedAt[0] ?? '') >= 2, 'the first one is repeated');
  await eventually(() => times(killedAt[2] ?? '') >= 2, 'the third one is repeated');
  for (const [id, history] of ordered) {
    const firsts = [...new Set(receiver.received.map((one) => one.id))];
    const ofSession = firsts.filter((one) => history.includes(one));
    expect([id, ofSession]).toEqual([id, history]);
  }
  expect(receiver.refused).toEqual([]);
  for (const one of folders) await one[Symbol.asyncDispose]();
});

test(
  'a thousand webhooks get their events in order, though NATS is killed meanwhile',
  async () => {
    const { secretOf } = createWebhookSecrets(parseMasterKeys(masterKey));
    const webhookOf = (path: string) => path.split('/').at(-1) ?? '';
    const history = new Map<string, string[]>();
    const { promise: restarted, resolve: goOn } = Promise.withResolvers<void>();
    let count = 0;
    // Some deliveries are stored when NATS is killed, some are under way, and most are to come.
    await using receiver = await startReceiver(
      (path) => secretOf(webhookOf(path), 1),
      (_got, _count, reply) => {
        count += 1;
        const isHeld = count > BEFORE_KILL;
        void (isHeld ? restarted : Promise.resolve()).then(() => reply.writeHead(204).end());
      },
    );
    const sessions = Array.from({ length: ORGANIZATIONS }, (_, n) => aSession(`many-${n}`));
    const types = ['session.requested', 'session.accessed'];
    for (const session of sessions) {
      const { organizationId } = session;
      await register(organizationId);
      for (let n = 0; n < WEBHOOKS_EACH; n += 1) {
        const webhookId = `whk_${organizationId}_${n}`;
        await addWebhook(`${receiver.url}/${webhookId}`, { organizationId, webhookId, types });
      }
    }
    for (const session of sessions) {
      await appendEach(context.eventStore, session, 3);
      const ids: string[] = [];
      for await (const event of context.eventStore.history(session)) ids.push(event.id);
      for (let n = 0; n < WEBHOOKS_EACH; n += 1)
        history.set(`whk_${session.organizationId}_${n}`, ids);
    }
    await using sender = await startSender();
    await eventually(() => count > BEFORE_KILL, 'deliveries are under way');
    await nats.kill();
    await nats.restart();
    goOn();
    /** What a webhook got, each event once, in the order of its first delivery. */
    const got = () => {
      const firsts = new Map<string, Set<string>>();
      for (const { path, id } of receiver.received) {
        const ids = firsts.get(webhookOf(path)) ?? new Set();
        firsts.set(webhookOf(path), ids.add(id));
      }
      return firsts;
    };
    const isWhole = () => {
      const firsts = got();
      return [...history].every(([id, ids]) => firsts.get(id)?.size === ids.length);
    };
    await eventually(isWhole, 'each webhook has each event', DELIVERED_WITHIN_MS);
    const firsts = got();
    expect(history.size).toBe(ORGANIZATIONS * WEBHOOKS_EACH);
    for (const [id, ids] of history) expect([id, [...(firsts.get(id) ?? [])]]).toEqual([id, ids]);
    expect(receiver.refused).toEqual([]);
    expect(sender.output()).not.toContain('"level":60');
  },
  2 * DELIVERED_WITHIN_MS,
);

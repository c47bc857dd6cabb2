import { headers, nuid, type NatsConnection } from '@nats-io/transport-node';
import { encode, type Message } from '#events/codec.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { newId } from '#src/kernel/ids.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { createCommandContext, type CommandContext } from '#src/commands/handle-command.ts';
import { createStateCache } from '#src/kernel/event-store/state-cache.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { createSession } from '#test/support/examples.ts';
import { aSession, requested, slotReserved } from '#test/support/events.fixture.ts';
import { startService, type RunningService } from '#test/support/service/service.ts';
import { send } from './http-client.ts';

/** The number of concurrent operations, and the duration of each measurement. */
const IN_FLIGHT = 64;
const SECONDS = 4;
const PLENTY = 1e9;
const LIMITS = { concurrentSessions: PLENTY };

export type Contention = {
  /** Atomic batches of two events a second, as bare messages: many at once, and one by one. */
  bare: number;
  bareSequential: number;
  /**
   * Creates a second on one organization: by the commands of one process, and of two that contend.
   */
  oneProcess: number;
  twoProcesses: number;
};

/**
 * Creates of one organization beside the same batches without the service's code, on an embedded
 * event store that has another reader, too.
 */
export async function measureContention(): Promise<Contention> {
  await using service = await startService({ ROLES: 'gateway' });
  const url = service.runtime.nats_url;
  await using first = await connectJetStream({ url });
  await using second = await connectJetStream({ url });
  const contexts = [first, second].map((connection) =>
    createCommandContext(createJetStreamEventStore(connection), Date.now, createStateCache()),
  ) as [CommandContext, CommandContext];
  const bare = () => sendBatch(first.nc, batchOfTwo());
  return {
    bare: await perSecond(IN_FLIGHT, bare),
    bareSequential: await perSecond(1, bare),
    oneProcess: await createsPerSecond([contexts[0]]),
    twoProcesses: await createsPerSecond(contexts),
  };
}

/** Atomic batches of two events a second as bare messages, so many at once. */
export function bareBatchesPerSecond(nc: NatsConnection, atOnce: number): Promise<number> {
  return perSecond(atOnce, () => sendBatch(nc, batchOfTwo()));
}

/** Creates a second through the whole API, answered without waiting for the browser. */
export async function measureApiContention(): Promise<{ perSecond: number; answers: string }> {
  const tier = { requests_per_minute: PLENTY, concurrent_sessions: PLENTY, credits: PLENTY };
  await using service = await startService({
    TIERS: JSON.stringify({ max: tier }),
    // No server accepts the requests: only their acceptance by the API is measured.
    POOL_MAX: '1',
    POOL_MIN_IDLE: '0',
    SIMULATED_LAUNCH_MS: '1h',
    QUEUE_MAX: '1000000',
    QUEUE_AFTER: '1h',
    QUEUE_TIMEOUT: '2h',
    LOG_LEVEL: 'warn',
  });
  const answers = new Map<number, number>();
  const rate = await perSecond(IN_FLIGHT, () => createOne(service, answers));
  const counts = [...answers].map(([status, count]) => `${count} × ${status}`).join(', ');
  return { perSecond: rate, answers: counts };
}

async function createOne({ apiUrl }: RunningService, answers: Map<number, number>): Promise<void> {
  const more = { prefer: 'respond-async' };
  const { status } = await send('POST', `${apiUrl}/api/sessions`, '{"duration":"1h"}', more);
  answers.set(status, (answers.get(status) ?? 0) + 1);
}

async function createsPerSecond(contexts: readonly CommandContext[]): Promise<number> {
  const [first] = contexts as [CommandContext];
  const organizationId = newId('org');
  const asked = { id: organizationId, name: 'Acme', tier: 'max', credits: PLENTY } as const;
  await registerOrganization(first, asked, newMetadata('bench'));
  let turn = 0;
  return perSecond(IN_FLIGHT, async () => {
    const context = contexts[(turn += 1) % contexts.length] as CommandContext;
    const identity = { organizationId, id: newId('ses') };
    const handled = await handleSessionCommand(
      context,
      identity,
      createSession({ now: Date.now() }),
      newMetadata('bench'),
      LIMITS,
    );
    if (isRejection(handled)) throw new Error(JSON.stringify(handled));
  });
}

/** Operations a second, by `workers` that each repeat the operation. */
async function perSecond(workers: number, work: () => Promise<void>): Promise<number> {
  let count = 0;
  const run = async (until: number) => {
    while (performance.now() < until) {
      await work();
      count += 1;
    }
  };
  const all = (ms: number) =>
    Promise.all(Array.from({ length: workers }, () => run(performance.now() + ms)));
  await all(500);
  count = 0;
  const startedAt = performance.now();
  await all(SECONDS * 1_000);
  return (count * 1_000) / (performance.now() - startedAt);
}

/** The first event of a session and of a ledger, like those of a create, with new ids. */
function batchOfTwo(): Message[] {
  const session = aSession();
  return [encode(requested(session)), encode(slotReserved(session))];
}

/** With the same append conditions as the service; nothing is read, decided or checked. */
async function sendBatch(nc: NatsConnection, messages: readonly Message[]): Promise<void> {
  const batchId = nuid.next();
  for (const [index, { subject, headers: fields, body }] of messages.entries()) {
    const isLast = index === messages.length - 1;
    const all = headers();
    for (const [name, value] of Object.entries(fields)) all.set(name, value);
    all.set('Nats-Expected-Last-Subject-Sequence', '0');
    all.set('Nats-Batch-Id', batchId);
    all.set('Nats-Batch-Sequence', String(index + 1));
    if (isLast) all.set('Nats-Batch-Commit', '1');
    if (!isLast) nc.publish(subject, body, { headers: all });
    else {
      const { error } = (await nc.request(subject, body, { headers: all, timeout: 5_000 })).json<{
        error?: object;
      }>();
      if (error !== undefined) throw new Error(JSON.stringify(error));
    }
  }
}

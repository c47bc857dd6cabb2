import type { WebSocket } from 'ws';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import type { RunningService } from '#test/support/service/service.ts';
import { ask, firstReply } from './cdp-client.ts';
import { summarize, type Samples } from './samples.ts';

/** Round trips of one CDP command, straight to the browser and through the gateway. */
export type RoundTrips = { direct: Samples; gateway: Samples };

const BLOCK = 200;

/** Interleaved blocks over both ways to the same browser, so that noise falls on both. */
export async function measureGateway(service: RunningService, blocks: number): Promise<RoundTrips> {
  const { body } = await service.request('POST', '/api/sessions', { duration: '10m' });
  const [through, straight] = await Promise.all([
    firstReply(body.cdp_url as string),
    firstReply(await browserAddress(service, body.id as string)),
  ]);
  const measured = { direct: [] as number[], gateway: [] as number[] };
  for (let block = 0; block <= blocks; block += 1) {
    const direct = await roundTrips(straight);
    const gateway = await roundTrips(through);
    if (block === 0) continue;
    measured.direct.push(...direct);
    measured.gateway.push(...gateway);
  }
  through.terminate();
  straight.terminate();
  await service.request('DELETE', `/api/sessions/${body.id}`);
  return { direct: summarize(measured.direct), gateway: summarize(measured.gateway) };
}

async function roundTrips(socket: WebSocket): Promise<number[]> {
  const measured: number[] = [];
  for (let id = 2; id < BLOCK + 2; id += 1) {
    const begunAt = performance.now();
    await ask(socket, { id, method: 'Browser.getVersion' });
    measured.push(performance.now() - begunAt);
  }
  return measured;
}

/** The address of the browser itself, which only the event store has. */
async function browserAddress(service: RunningService, id: string): Promise<string> {
  await using connection = await connectJetStream({ url: service.runtime.nats_url });
  const eventStore = createJetStreamEventStore(connection);
  const last = await eventStore.readLast<'session'>({ kind: 'session', organizationId: 'dev', id });
  const workload = last?.state?.workload;
  if (!workload) throw new Error(`session ${id} has no browser`);
  return `ws://${workload.cdp.host}:${workload.cdp.port}${workload.cdp.path}`;
}

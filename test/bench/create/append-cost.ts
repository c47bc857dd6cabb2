import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import type { StreamAppend } from '#src/kernel/event-store/event-store.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { aSession, change, requested, slotReserved } from '#test/support/events.fixture.ts';
import { startService } from '#test/support/service/service.ts';
import { summarize, timed, type Samples } from '../samples.ts';

/** As long as a create is apart from the next one: nothing is warm by the one before. */
const PAUSE_MS = 20;

/** An append of one event, and of two of two aggregates in one atomic batch; one at a time. */
export async function measureAppends(rounds: number): Promise<{ one: Samples; two: Samples }> {
  // No role that would take the sessions for real ones.
  await using service = await startService({ ROLES: 'gateway' });
  const { runtime } = service;
  await using connection = await connectJetStream({ url: runtime.nats_url });
  const { append } = createJetStreamEventStore(connection);
  const one: number[] = [];
  const two: number[] = [];
  const measure = async (changes: StreamAppend[]): Promise<number> => {
    await sleep(PAUSE_MS);
    const { ms, result } = await timed(() => append(changes));
    if (result.outcome !== 'appended') throw new Error(`an append was ${result.outcome}`);
    return ms;
  };
  for (let round = 0; round < rounds; round += 1) {
    one.push(await measure([change(0, requested(aSession()))]));
    const session = aSession();
    two.push(await measure([change(0, requested(session)), change(0, slotReserved(session))]));
  }
  return { one: summarize(one), two: summarize(two) };
}

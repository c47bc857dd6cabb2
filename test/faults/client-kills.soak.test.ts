import { expect, test } from 'vitest';
import { createClient } from '#src/apps/client/client.ts';
import { DEV_KEY, eventually, startService } from '#test/support/service/service.ts';
import { soakOr } from '#test/support/soak.ts';

/** CI kills twice: the client comes back, and comes back again. */
const KILLS = soakOr(5, 2);

test(`the client receives each event once and in order although the service is killed ${KILLS} times`, async () => {
  await using service = await startService({ POOL_MAX: '10' });
  const client = createClient({ url: service.apiUrl, apiKey: DEV_KEY });
  const received: number[] = [];
  const stop = new AbortController();
  const listening = (async () => {
    // A start may outlast ten tries on a busy machine.
    const events = client.events({ from: 1, signal: stop.signal, triesMax: Infinity });
    for await (const { sequence } of events) received.push(sequence);
  })();
  for (let round = 1; round <= KILLS; round += 1) {
    const before = received.length;
    await using session = await client.sessions.create({ duration: '5m' });
    await session.access();
    await eventually(() => received.length > before, 'the client receives events');
    await service.end('SIGKILL');
    await service.startAgain();
  }
  await using last = await client.sessions.create({ duration: '1m' });
  const lifeOf = async () => {
    const life: number[] = [];
    for await (const { sequence, type } of last.events()) {
      life.push(sequence);
      if (type === 'session.stop-requested') break;
    }
    return life;
  };
  await last.stop();
  const end = (await lifeOf()).at(-1) ?? 0;
  await eventually(() => (received.at(-1) ?? 0) >= end, 'the client has the last event');
  stop.abort();
  await listening.catch(() => undefined);

  const log: number[] = [];
  for await (const { sequence } of client.events({ from: 1 })) {
    log.push(sequence);
    if (sequence >= end) break;
  }
  expect(received.slice(0, log.length)).toEqual(log);
});

import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { boundReading } from '#src/kernel/http/bound-reading.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

/** An answer that a client does not take. */
function answer(bytes: number) {
  const response = new EventEmitter();
  let isCut = false;
  Object.assign(response, { destroy: () => void (isCut = true) });
  boundReading(response as unknown as ServerResponse, bytes);
  return { response, isCut: () => isCut };
}

test('a large answer has 120 s, and a second for each 64 KiB of it', async () => {
  const { isCut } = answer(640 * 1024);
  await sleep(129_000);
  expect(isCut()).toBe(false);
  await sleep(2_000);
  expect(isCut()).toBe(true);
});

test.each(['finish', 'close'])(
  'one that has come to its %s has no bound any more',
  async (event) => {
    const { response, isCut } = answer(640 * 1024);
    response.emit(event);
    await sleep(1_000_000);
    expect(isCut()).toBe(false);
  },
);

test('one that the system takes at once has none', async () => {
  const { isCut } = answer(1_000);
  await sleep(1_000_000);
  expect(isCut()).toBe(false);
});
